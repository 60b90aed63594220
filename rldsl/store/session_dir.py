"""The directory of one session. It is self-contained: the state of the session follows from its files alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rldsl.spec.session import session_id
from rldsl.store import layout
from rldsl.store.claim import hold, is_held
from rldsl.store.errors import CannotWrite, StoreError, cannot_write
from rldsl.store.files import replace_json, replace_text
from rldsl.store.journal import Journal, fold, read_journal
from rldsl.store.session_state import SessionState, State


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
            replace_json(made.session, dict(session), durable=durable)
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
        return self.session.exists()

    def read_session(self) -> dict[str, Any]:
        """What this session is, as its creator gave it."""
        try:
            session = json.loads(self.session.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.session} cannot be read: {error}") from error
        if not isinstance(session, dict):
            raise StoreError(f"{self.session} does not hold a session")
        return session

    def claim(self) -> AbstractContextManager[None]:
        """Holds the session for this process; raises AlreadyRunning if another has it."""
        return hold(self.lock, self.alive)

    def state(self) -> State:
        return self.read_state().state

    def recorded(self) -> SessionState:
        """The session by its `session.json`, before any event; by the names of its directory if that is unreadable."""
        try:
            record = self.read_session()
        except StoreError:
            record = {}
        target, frames = record.get("target"), record.get("frames")
        return SessionState(
            experiment=str(record.get("experiment", "?")),
            session=self.id,
            seed=self.seed or 0,
            frames=frames if isinstance(frames, int) else 0,
            target=target.get("score") if isinstance(target, dict) else None,
            directory=str(self.path),
        )

    def read_state(self, start: SessionState | None = None) -> SessionState:
        """`start` (without one, a blank state) after the events of the journal, joined with the heartbeat."""
        start = start or SessionState()
        return self.with_heartbeat(fold(read_journal(self.journal.path), start)) if self.exists() else start

    def with_heartbeat(self, state: SessionState) -> SessionState:
        """The state that a journal adds up to; `running` if a live process holds the session."""
        if state.state in ("done", "failed") or not is_held(self.alive):
            return state
        return replace(state, state="running", reason=None)


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
