"""What `run_plan` reports to its caller while it runs. `launch` itself prints nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from rldsl.launch.job_records import JobRecord
from rldsl.plan.existing import PlannedSession
from rldsl.store.journal import JournalReader
from rldsl.store.metrics import MetricsReader, Row
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import State

LOG_LINES = 8


@dataclass
class FollowedSession:
    """A session that is running, and its last log point."""

    planned: PlannedSession
    directory: SessionDir
    reader: MetricsReader
    journal: JournalReader
    row: Row = field(default_factory=dict)

    @classmethod
    def start(cls, planned: PlannedSession, runs: Path) -> FollowedSession:
        """Follows a session from the first log point that it has."""
        directory = SessionDir(runs / planned.directory)
        return cls(planned, directory, MetricsReader(directory.metrics), JournalReader(directory.journal.path))

    def read(self) -> None:
        """Reads new log points and events."""
        if rows := self.reader.read_new():
            self.row = rows[-1]
        self.journal.read_new()

    @property
    def frame(self) -> int:
        return int(self.row.get("frame") or self.planned.on_disk.frame)

    @property
    def compiling(self) -> float | None:
        """Seconds for which it has been compiling; None if it is not."""
        since = self.journal.state.compiling_since
        return None if since is None else max(0.0, time.time() - since)

    @property
    def fps(self) -> float | None:
        """The speed at the last log point; None if it is not training now, or has not begun to learn."""
        return None if self.compiling is not None else self.row.get("fps")

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at the present speed."""
        return (self.planned.frames - self.frame) / self.fps if self.fps else None

    def last_log_lines(self) -> list[str]:
        """The end of its log."""
        try:
            return self.directory.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        except OSError:
            return []


class Ending(NamedTuple):
    """How a session ended; `reason` and `log` are given if it ended neither finished nor stopped on request."""

    session: FollowedSession
    state: State
    reason: str | None = None
    log: Sequence[str] = ()


class Observer(Protocol):
    """Receives the events of `run_plan`, in the order in which they happen."""

    def skipped(self, running: int, failed: int) -> None:
        """Sessions that are left alone: those that run already, and those that failed before."""

    def note(self, sentence: str) -> None:
        """Something that the user should know: what this command waits for, or what an interrupted one has left."""

    def already_queued(self, sessions: int) -> None:
        """Sessions whose jobs are waiting or running; they are kept."""

    def stale_jobs(self, records: Sequence[JobRecord], cancelled: bool, refusals: Sequence[str]) -> None:
        """Jobs in a queue that the plan no longer contains; `refusals` say why they could not be cancelled."""

    def submitted(self, sessions: int, records: Sequence[JobRecord], backend: str) -> None:
        """Jobs that a queue has accepted."""

    def refused(self, accepted: int, reason: str) -> None:
        """A queue accepted only the first jobs of a submission."""

    def progress(self, running: Collection[FollowedSession]) -> None:
        """The sessions that run now; called several times per second in the foreground."""

    def ended(self, ending: Ending) -> None:
        """A session ended."""

    def stopping(self) -> None:
        """The user asked to stop; sessions in the foreground checkpoint first."""
