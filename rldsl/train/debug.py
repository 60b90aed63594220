"""Training in the process of the command, for `train --debug`: `breakpoint()` works and exceptions are raised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rldsl.spec.session import Session
from rldsl.store.code_version import CodeVersions
from rldsl.store.provenance import collect
from rldsl.train.pack import Pack, open_directories


def train_here(
    sessions: Sequence[Session], runs: Path, file: Path | None, command: Sequence[str], any_code: bool
) -> list[str]:
    """Trains sessions one after the other; returns how each ended. They are compiled only if they ask for it.

    Ctrl-C interrupts at once: a session continues from its last checkpoint.
    """
    origin = collect(command, Path.cwd(), [file] if file else [])
    outcomes = []
    for session in sessions:
        eager = _without_compilation(session)
        pack = Pack([eager], open_directories(runs, [eager]), origin, CodeVersions(file), any_code=any_code)
        outcomes.append(pack.run(lambda: None))
    return outcomes


def _without_compilation(session: Session) -> Session:
    if session.trial.compute.compile != "auto":
        return session
    compute = session.trial.compute.with_(compile="off")
    return session.with_(trial=session.trial.with_(compute=compute))
