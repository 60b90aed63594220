"""The directory of one session: it stands alone, and its state can be told from it alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rldsl.spec.session import session_id
from rldsl.store import layout
from rldsl.store.claim import hold, is_held
from rldsl.store.errors import CannotWrite, StoreError, cannot_write
from rldsl.store.files import replace_json, replace_text
from rldsl.store.journal import Journal, JournalState, fold, read_journal

State = Literal["new", "resume", "running", "done", "failed"]


class StateReport(NamedTuple):
    state: State = "new"
    frame: int = 0
    seconds: float = 0.0
    reason: str | None = None
    lives: int = 0
    garbage: int = 0  # unreadable lines of the journal


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
        return self.report().state

    def report(self, story: JournalState | None = None) -> StateReport:
        """The journal joined with whether the process that wrote it lives; `story` is what it adds up to, if known."""
        if not self.exists():
            return StateReport()
        story = story or fold(read_journal(self.journal.path))
        return StateReport(
            self._state(story), story.frame, story.seconds, story.reason, lives=story.lives, garbage=story.garbage
        )

    def _state(self, story: JournalState) -> State:
        if story.status == "done" or story.status == "failed":
            return story.status
        if is_held(self.alive):
            return "running"
        return "new" if story.status == "created" else "resume"


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
