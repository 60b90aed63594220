"""Functions of the user at log points and at the end of a session (`.on_log`, `.on_end`)."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rldsl.spec.declared import resolve
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session
from rldsl.store.session_dir import SessionDir

EVENT = "hook"
"""The event of a journal for what a hook did."""
RESERVED = ("best", "last")


@dataclass(kw_only=True)
class Moment:
    """Where a session is when one of its functions is called."""

    experiment: str
    session: str
    seed: int
    frame: int
    frames: int
    """The budget."""
    metrics: Mapping[str, float | None]
    """The last row of metrics.csv: `episode_return`, `eval_return`, the agent's losses, ...; empty if there is none."""
    directory: Path


@dataclass(kw_only=True)
class LogPoint(Moment):
    """What a function of `.on_log` is called with: a log point that has just been written."""

    stop_reason: str | None = None
    checkpoints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def stop(self, reason: str) -> None:
        """Ends the session here: it is done, and the journal has the reason."""
        self.stop_reason = reason

    def save_checkpoint(self, name: str) -> None:
        """Keeps the present policy as `checkpoints/<name>`; the same name replaces it."""
        if not name.replace("-", "").replace("_", "").isalnum() or name in RESERVED or name.isdigit():
            raise ValueError(f"a checkpoint cannot be called {name!r}: use letters, digits, - and _")
        self.checkpoints.append(name)

    def note(self, text: str) -> None:
        """Writes a sentence to the journal, such as that a message was sent."""
        self.notes.append(text)


@dataclass(kw_only=True)
class SessionEnd(Moment):
    """What a function of `.on_end` is called with, once a session is done or has failed."""

    outcome: Literal["done", "failed"]
    reason: str | None


class Hooks:
    """The hooks of one session."""

    def __init__(self, session: Session, directory: SessionDir) -> None:
        self.session, self.directory = session, directory
        self._on_log, self._on_end = (_function(name) for name in (session.trial.on_log, session.trial.on_end))
        self._last: Mapping[str, float | None] = {}

    def log(self, row: Mapping[str, float | None], save: Callable[[str], None]) -> str | None:
        """Calls `.on_log` for a row of metrics.csv; returns why the session should end. `save` keeps a checkpoint.

        A function that raises fails the session.
        """
        self._last = row
        if self._on_log is None:
            return None
        frame = int(row["frame"] or 0)
        point = LogPoint(**self._about(), frame=frame, metrics=dict(row))
        try:
            self._on_log(point)
        except Exception as error:
            traceback.print_exc()
            raise SpecError(f"the function {self.session.trial.on_log} of .on_log raised {_named(error)}") from error
        for name in point.checkpoints:
            save(name)
        acted: dict[str, Any] = {"checkpoints": point.checkpoints, "notes": point.notes, "stop": point.stop_reason}
        if any(acted.values()):
            facts = {name: value for name, value in acted.items() if value}
            self.directory.journal.append(EVENT, frame=frame, function=self.session.trial.on_log, **facts)
        return point.stop_reason

    def end(self, frame: int, outcome: Literal["done", "failed"], reason: str | None = None) -> None:
        """Calls `.on_end`. The session has ended already: a function that raises is only reported."""
        if self._on_end is None:
            return
        ended = SessionEnd(**self._about(), frame=frame, metrics=dict(self._last), outcome=outcome, reason=reason)
        try:
            self._on_end(ended)
        except Exception as error:
            traceback.print_exc()
            problem = f"raised {_named(error)}"
            self.directory.journal.append(EVENT, frame=frame, function=self.session.trial.on_end, problem=problem)

    def _about(self) -> dict[str, Any]:
        one = self.session
        frames = one.trial.budget.frames
        return {
            "experiment": one.experiment,
            "session": one.id,
            "seed": one.seed,
            "frames": frames,
            "directory": self.directory.path,
        }


def _function(name: str | None) -> Callable[[Any], None] | None:
    if name is None:
        return None
    try:
        found = resolve(name)
    except ImportError as error:
        raise SpecError(f"the function {name} cannot be called: {error}") from error
    if not callable(found):
        raise SpecError(
            f"the function {name} does not exist; it is defined at the top of the experiment file or a module"
        )
    function: Callable[[Any], None] = found
    return function


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
