"""The sessions that others start from: in the run directory, or a copy in `runs/.initial` of an agent of the Hub."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rldsl.spec.init_from import InitFrom
from rldsl.store.errors import SessionNotFound
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir

INITIAL = ".initial"


def initial_session(runs: Path, init: InitFrom, seed: int) -> SessionDir:
    """The session whose weights the session with this seed starts from; raises SessionNotFound."""
    if init.on_hub:
        copy = SessionDir(downloaded_path(runs, init))
        if copy.exists():
            return copy
        raise SessionNotFound(f"init_from: {init.source} has not been downloaded to {copy.path}")
    wanted = init.session(seed)
    for session in Runs(runs).sessions():
        if session.id == wanted:
            return session
    raise SessionNotFound(f"init_from: there is no session {wanted} in {runs}: train it first")


def downloaded_path(runs: Path, init: InitFrom) -> Path:
    """Where the copy of an agent of the Hub is."""
    return runs / INITIAL / hashlib.sha256(init.source.encode()).hexdigest()[:16]
