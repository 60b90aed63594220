"""The directory of one session. It is self-contained: the state of the session follows from its files alone."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from rldsl.spec.base import Natural
from rldsl.spec.budget import Target
from rldsl.spec.errors import from_validation
from rldsl.spec.experiment import Name
from rldsl.spec.json_text import parse_object
from rldsl.spec.session import session_id
from rldsl.store import layout
from rldsl.store.claim import NO_PATIENCE, Claim, Patience, hold, is_held
from rldsl.store.errors import CannotWrite, RecordDamaged, StoreError, cannot_write
from rldsl.store.files import replace_json, replace_text
from rldsl.store.journal import STATUSES, Garbage, Journal, JournalReader, printable, read_journal
from rldsl.store.processes import start_time
from rldsl.store.session_state import SessionState, State

DIGEST = "digest"
"""The field of `session.json` with the SHA-256 of all others; earlier versions did not write it."""
_TEMPORARY = re.compile(r"[.-](\d{1,9})-[0-9a-f]{8}\.tmp$")
"""A file that is about to replace another one, with the pid of its writer."""
GONE = "its process ended without a word: it was killed, or its machine went down"


class _Recorded(BaseModel, frozen=True):
    """What is read of a `session.json` without parsing the settings in it."""

    experiment: Name = "?"
    agent: str = "?"
    env: str = "?"
    frames: Natural = 0
    target: Target | None = None
    trial: dict[str, Any] = {}
    schema_: int | None = Field(default=None, alias="schema")


class SessionDir:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"SessionDir({str(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SessionDir) and self.path == other.path

    def __hash__(self) -> int:
        return hash(self.path)

    @classmethod
    def create(
        cls, runs: Path, relative: str, session: Mapping[str, Any], config_gin: str, *, durable: bool = True
    ) -> SessionDir:
        """Makes the session `relative` under `runs`, or finishes making it; one that is complete is left as it is.

        session.json comes last, by rename: a directory without it counts as absent. Who makes thousands of them does
        not wait for the disk each time, and syncs once.
        """
        made = cls(runs / relative)
        if made.exists():
            return made
        with _undone_on_failure(runs, made.path):
            made.path.mkdir(parents=True, exist_ok=True)
            replace_text(made.config, config_gin, durable=durable)
            replace_json(made.session, with_digest(session), durable=durable)
        Journal(made.journal.path, durable).append("created")
        return made

    @property
    def session(self) -> Path:
        return self.path / layout.SESSION

    @property
    def config(self) -> Path:
        return self.path / layout.CONFIG

    @property
    def metrics(self) -> Path:
        return self.path / layout.METRICS

    @property
    def tensorboard(self) -> Path:
        return self.path / layout.TENSORBOARD

    @property
    def checkpoints(self) -> Path:
        return self.path / layout.CHECKPOINTS

    @property
    def log(self) -> Path:
        return self.path / layout.LOG

    @property
    def alive(self) -> Path:
        return self.path / layout.ALIVE

    @property
    def lock(self) -> Path:
        return self.path / layout.LOCK

    @property
    def journal(self) -> Journal:
        return Journal(self.path / layout.JOURNAL)

    @property
    def seed(self) -> int | None:
        """By the name of the directory; None for a foreign one."""
        return layout.seed_of(self.path.name)

    @property
    def trial(self) -> str | None:
        """The trial's hash, by the name of the directory; None for a foreign one."""
        return layout.trial_of(self.path.parent.name)

    @property
    def id(self) -> str:
        if self.trial is None or self.seed is None:
            raise StoreError(f"{self.path} is not named like the directory of a session")
        return session_id(self.trial, self.seed)

    def exists(self) -> bool:
        return os.path.exists(self.session)  # noqa: PTH110 (never raises, whatever the name is)

    def read_session(self) -> dict[str, Any]:
        """What this session is, as its creator gave it. `Session.from_record` verifies the settings in it."""
        return self._read()[0]

    def _read(self) -> tuple[dict[str, Any], _Recorded]:
        try:
            session = parse_object(self.session.read_bytes())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RecordDamaged(f"{self.session} cannot be read: {reason}") from error
        if (digest := session.pop(DIGEST, None)) is not None and with_digest(session)[DIGEST] != digest:
            raise RecordDamaged(f"{self.session} was changed: its digest does not fit it")
        if self.trial is not None and self.seed is not None and session.get("id", self.id) != self.id:
            raise StoreError(f"{self.session} belongs to another session: {str(session['id'])[:40]!r}")
        try:
            return session, _Recorded.model_validate(session)
        except ValidationError as error:
            reason = from_validation(error, _Recorded, "").partition(";")[0]
            raise RecordDamaged(f"{self.session} is damaged: {reason}") from error

    def repair_session(self, session: Mapping[str, Any]) -> None:
        """Writes a damaged `session.json` again, from the plan that the session is trained from."""
        try:
            self.read_session()
        except RecordDamaged as error:
            replace_json(self.session, with_digest(session))
            self.journal.append("fallback", reason=f"{error}; written again from the plan")

    def claim(self, patience: Patience = NO_PATIENCE) -> AbstractContextManager[Claim]:
        """Holds the session for this process; raises AlreadyRunning if another has it."""
        return hold(self.lock, self.alive, patience)

    def remove_leftovers(self) -> None:
        """Removes temporary files of writers that were killed; called by the process that holds the session."""
        for path in self.path.glob(".*.tmp"):
            match = _TEMPORARY.search(path.name)
            if match is not None and start_time(int(match[1])) is None:
                with suppress(OSError):
                    path.unlink()

    def record_crash(self, pid: int, reason: str) -> None:
        """Journals how a process of this session ended that could not do so itself; called by its parent."""
        if not self.exists() or is_held(self.alive):
            return
        events = [one for one in read_journal(self.journal.path) if not isinstance(one, Garbage)]
        last = next((one for one in reversed(events) if one["event"] in STATUSES), {"event": "created"})
        if last["event"] in ("failed", "done", "paused") or (last["event"] == "started" and last.get("pid") != pid):
            return
        with suppress(CannotWrite):
            self.journal.append("crashed", pid=pid, reason=reason)

    def state(self) -> State:
        return self.read_state().state

    def recorded(self) -> SessionState:
        """The session by its `session.json`, before any event; by the names of its directory if that is unreadable."""
        recorded, damage = _Recorded(), None
        try:
            recorded = self._read()[1]
        except StoreError as error:
            damage = str(error)
        return SessionState(
            experiment=recorded.experiment,
            session=self.id,
            seed=self.seed or 0,
            frames=recorded.frames,
            target=recorded.target.score if recorded.target else None,
            directory=str(self.path),
            damage=printable(damage),
        )

    def read_state(self, start: SessionState | None = None) -> SessionState:
        """`start` (without one, a blank state) after the events of the journal, joined with the heartbeat."""
        start = start or SessionState()
        if not self.exists():
            return start
        reader = JournalReader(self.journal.path, start)
        reader.read_new()
        return self.with_heartbeat(reader.state)

    def with_heartbeat(self, state: SessionState) -> SessionState:
        """The state that a journal adds up to; `running` if a live process holds the session."""
        if state.state in ("done", "failed"):
            return state
        if not is_held(self.alive):
            return replace(state, reason=GONE) if state.status == "started" else state
        return replace(state, state="running", reason=None)


def with_digest(record: Mapping[str, Any]) -> dict[str, Any]:
    """A session's record as it is written to `session.json`, with a digest of its other fields."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return {**record, DIGEST: hashlib.sha256(text.encode()).hexdigest()}


@contextmanager
def _undone_on_failure(runs: Path, directory: Path) -> Iterator[None]:
    """Takes back the directories that the block made if it fails, and says so of the runs directory."""
    absent = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        yield
    except (OSError, CannotWrite) as error:
        with suppress(OSError):
            (directory / layout.CONFIG).unlink()
        for path in absent:
            with suppress(OSError):
                path.rmdir()
        reason = error if isinstance(error, CannotWrite) else cannot_write(directory, error)
        raise type(reason)(f"cannot create a session in the runs directory {runs}: {reason}") from error
