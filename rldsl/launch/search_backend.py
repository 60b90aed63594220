"""What the driver of a search needs from the place where its packs run: processes of this machine, or a queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from rldsl.plan.existing import PlannedSession


class SearchPack(NamedTuple):
    """Sessions that train together, from the same frame, up to the frame of a rung; None: to the end."""

    sessions: Sequence[PlannedSession]
    until: int | None


class Ended(NamedTuple):
    """A session whose process or job has ended; `problem` is given if that was neither done nor asked to stop."""

    id: str
    problem: str | None = None


class SearchBackend(Protocol):
    """Runs packs. A session is busy from `start` or `adopt` until `poll` returns it."""

    def adopt(self, packs: Sequence[SearchPack]) -> None:
        """Takes over those of these sessions that an earlier driver of the same search started and that still run."""

    @property
    def busy(self) -> Collection[str]:
        """The sessions that run, or wait in a queue."""

    @property
    def workers(self) -> int | None:
        """How many packs may run at the same time; None: a queue decides."""

    def capacity(self) -> int:
        """How many more packs may be started now."""

    def start(self, plan: Path, packs: Sequence[SearchPack]) -> None:
        """Starts packs of sessions of a plan file."""

    def poll(self) -> list[Ended]:
        """The sessions that have ended since the last call."""

    def pause(self) -> float:
        """Seconds until the next poll."""

    def interrupt(self, requests: int) -> bool:
        """Handles the user's n-th request to stop; returns whether to wait until all sessions have ended."""

    def cancel(self) -> None:
        """Asks all sessions to checkpoint and stop."""

    def abort(self) -> None:
        """Called if the driver fails: leaves no process behind that nobody waits for."""
