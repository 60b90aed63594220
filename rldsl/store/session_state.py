"""The state of a session, as its directory describes it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

JournalStatus = Literal["created", "started", "stopped", "crashed", "paused", "done", "failed"]
State = Literal["new", "queued", "running", "resume", "paused", "done", "failed"]

REPORTED = (
    *("experiment", "session", "seed", "state", "frame", "frames", "fps", "episode_return", "episode_return_ma"),
    *("target", "seconds", "compiling", "attempts", "device", "reason", "unreadable", "damage", "fallbacks"),
    *("tags", "notes", "directory", "code", "other_code"),
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
    """Why it failed or stopped, or how its process ended."""
    frame: int = 0
    """The frame that was reached; an attempt that starts from an earlier checkpoint sets it back."""
    seconds: float = 0.0
    """Seconds of work over all attempts; a killed attempt counts up to its last event."""
    attempts: int = 0
    """How many times a process started the session."""
    device: str | None = None
    """The device of the last attempt."""
    unreadable: int = 0
    """Lines of the journal that are not events."""

    damage: str | None = None
    """What is wrong with its files, if they were checked."""
    fallbacks: tuple[str, ...] = ()
    """What damaged files made a resumed process do: use an older checkpoint, or restore metrics from a copy."""
    code: str | None = None
    """The digest of the code that the last attempt ran; None for sessions of earlier versions of rldsl."""
    codes: tuple[str, ...] = ()
    """The digests of all attempts, each once."""
    other_code: bool = False
    """Whether the last attempt ran other code than the present one. No directory says so: it needs a comparison."""

    fps: float | None = None
    episode_return: float | None = None
    episode_return_ma: float | None = None

    tags: tuple[str, ...] = ()
    notes: str = ""
    """Tags and notes of users; see `rldsl.store.notes`."""

    status: JournalStatus = "created"
    """The last status event of the journal."""
    last_event: str | None = None
    metrics_sha256: str | None = None
    """The digest of metrics.csv when the session ended; None while it runs, or if it was not recorded."""
    checkpoint_frame: int | None = None
    first_time: float | None = None
    last_time: float | None = None
    attempt_start: float | None = None
    compiling_since: float | None = None
    """When its process began to compile, if that has not ended."""
    earlier_seconds: float = 0.0
    """Seconds of work of the attempts before this one."""

    @property
    def label(self) -> str:
        """The state as tables show it."""
        return f"{self.state} (other code)" if self.other_code else self.state

    @property
    def note(self) -> str:
        """What a table shows beside the numbers: the reason, versions of the code, damage, tags, notes."""
        lines = f"{self.unreadable:,} unreadable line{'' if self.unreadable == 1 else 's'} in the journal"
        versions = f"trained with {len(self.codes)} versions of the code" if len(self.codes) > 1 else None
        known = [self.reason, versions, self.damage, *dict.fromkeys(self.fallbacks), lines if self.unreadable else None]
        known += [" ".join(f"#{tag}" for tag in self.tags), self.notes]
        return "; ".join(filter(None, known))

    @property
    def compiling(self) -> float | None:
        """Seconds for which its process has been compiling; None if it is not."""
        if self.state != "running" or self.compiling_since is None:
            return None
        return max(0.0, time.time() - self.compiling_since)

    @property
    def length(self) -> int:
        """The frames of the whole session: its budget, or where a hook has ended it before."""
        return self.frame if self.state == "done" and 0 < self.frame < self.frames else self.frames

    def reached(self, until: int | None) -> bool:
        """Whether there is nothing left to train: it is done or, given a frame to train up to, paused there."""
        return self.state == "done" or (until is not None and self.state == "paused" and self.frame >= until)

    def with_log_point(self, row: Mapping[str, Any]) -> SessionState:
        """The state with its metrics at the last log point, which may be newer than the last event of the journal."""
        return replace(
            self,
            frame=int(max(self.frame, _finite(row, "frame") or 0)),
            seconds=max(self.seconds, _finite(row, "seconds") or 0.0),
            fps=_finite(row, "fps"),
            episode_return=row.get("episode_return"),
            episode_return_ma=row.get("episode_return_ma"),
        )

    def data(self) -> dict[str, Any]:
        """The state as JSON."""
        return {name: getattr(self, name) for name in REPORTED}


def _finite(row: Mapping[str, Any], name: str) -> float | None:
    """A number of a log point; None if it is missing, infinite or not a number, as in a damaged file."""
    value = row.get(name)
    return value if isinstance(value, int | float) and abs(value) < sys.maxsize else None
