"""The state of a session, as its directory describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

JournalStatus = Literal["created", "started", "stopped", "paused", "done", "failed"]
State = Literal["new", "queued", "running", "resume", "paused", "done", "failed"]

REPORTED = (
    *("experiment", "session", "seed", "state", "frame", "frames", "fps", "episode_return", "episode_return_ma"),
    *("target", "seconds", "attempts", "reason", "unreadable", "directory"),
)
"""The fields that `status --json` and `list --json` print."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session's record (`session.json`), joined with its journal, its heartbeat and its last log point.

    `state` is `resume` where the journal says `started` and no live process holds the session: it was killed.
    It is `paused` where it was to be trained only up to a frame before the end of its budget, and has reached it.
    `queued` comes from a queue and is never found in a directory.
    """

    experiment: str = "?"
    session: str = ""
    seed: int = 0
    frames: int = 0
    """The budget of the session."""
    target: float | None = None
    directory: str = ""

    state: State = "new"
    reason: str | None = None
    """Why it failed or stopped."""
    frame: int = 0
    """The frame that was reached; an attempt that starts from an earlier checkpoint sets it back."""
    seconds: float = 0.0
    """Seconds of work over all attempts; a killed attempt counts up to its last event."""
    attempts: int = 0
    """How many times a process started the session."""
    unreadable: int = 0
    """Lines of the journal that are not events."""

    fps: float | None = None
    episode_return: float | None = None
    episode_return_ma: float | None = None

    status: JournalStatus = "created"
    """The last status event of the journal."""
    last_event: str | None = None
    checkpoint_frame: int | None = None
    first_time: float | None = None
    last_time: float | None = None
    attempt_start: float | None = None
    earlier_seconds: float = 0.0
    """Seconds of work of the attempts before this one."""

    @property
    def note(self) -> str:
        """What a table shows beside the numbers: the reason, and damage to the journal."""
        lines = f"{self.unreadable:,} unreadable line{'' if self.unreadable == 1 else 's'} in the journal"
        return "; ".join([*([self.reason] if self.reason else []), *([lines] if self.unreadable else [])])

    def reached(self, until: int | None) -> bool:
        """Whether there is nothing left to train: it is done or, given a frame to train up to, paused there."""
        return self.state == "done" or (until is not None and self.state == "paused" and self.frame >= until)

    def with_log_point(self, row: Mapping[str, Any]) -> SessionState:
        """The state with its metrics at the last log point, which may be newer than the last event of the journal."""
        return replace(
            self,
            frame=int(max(self.frame, row.get("frame") or 0)),
            seconds=max(self.seconds, row.get("seconds") or 0.0),
            fps=row.get("fps"),
            episode_return=row.get("episode_return"),
            episode_return_ma=row.get("episode_return_ma"),
        )

    def data(self) -> dict[str, Any]:
        """The state as JSON."""
        return {name: getattr(self, name) for name in REPORTED}
