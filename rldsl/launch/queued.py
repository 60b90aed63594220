"""Jobs in a queue: they outlive the command that follows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from rldsl.launch.backlog import read_backlog
from rldsl.launch.observer import Ending, FollowedSession
from rldsl.launch.queues import QueuedJob, Queues
from rldsl.plan.existing import PlannedSession
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import State

POLL_SECONDS = 1.0
POLL_SHARE = 0.1
"""Share of the time that may be spent on reading run directories, however many there are."""
QUEUE_SECONDS = 15.0
"""Seconds between two requests to a queue: administrators object to more frequent ones."""


class QueuedJobs:
    """Sessions whose jobs are in a queue. A `JobGroup`.

    The run directory says which sessions have started and ended. The queue is asked, less often, about jobs that may
    have ended without a trace there.
    """

    def __init__(
        self,
        sessions: Iterable[PlannedSession],
        runs: Path,
        until: int | None = None,
        refill: Callable[[], list[PlannedSession]] | None = None,
        obstacle: Callable[[PlannedSession], str | None] = lambda _: None,
    ) -> None:
        self.runs = runs
        self.obstacle = obstacle
        """Why a session could not start whose job was cancelled; None if that is not known."""
        self.refill = refill
        """Submits more of a backlog; returns the sessions that the queue has accepted. None: there is no backlog."""
        self.until = until
        self.queues = Queues(runs)
        self.lost = 0
        """Sessions whose jobs ended before they were finished."""
        self._waiting = {planned.id: planned for planned in sessions}
        self._running: dict[str, FollowedSession] = {}
        self._suspects: set[str] = set()
        self._queue_polled = time.monotonic()
        self._poll_seconds = 0.0

    @property
    def active(self) -> bool:
        return bool(self._waiting or self._running or self.refill)

    @property
    def running(self) -> Collection[FollowedSession]:
        return self._running.values()

    def poll(self) -> list[Ending]:
        began = time.monotonic()
        endings = []
        if began - self._queue_polled >= QUEUE_SECONDS:
            self._queue_polled = began
            endings += self._poll_queue()
            self._poll_backlog()
        endings += self._poll_directories()
        self._poll_seconds = time.monotonic() - began
        return endings

    def pause(self) -> float:
        return max(POLL_SECONDS, self._poll_seconds / POLL_SHARE)

    def stop(self, requests: int) -> bool:
        """A stop request ends the following; the jobs continue."""
        return False

    def abort(self) -> None:
        """The jobs continue without this command."""

    def _poll_directories(self) -> list[Ending]:
        for id, planned in list(self._waiting.items()):
            state = SessionDir(self.runs / planned.directory).read_state()
            if state.state in ("running", "failed") or state.reached(self.until):
                self._running[id] = FollowedSession.start(self._waiting.pop(id), self.runs)
        endings = []
        for id, session in list(self._running.items()):
            session.read()
            state = session.directory.read_state()
            if state.state == "failed" or state.reached(self.until):
                endings.append(self._ending(id, state.state, state.reason))
            elif state.state != "running":  # requeued or lost: its queue knows
                self._waiting[id] = self._running.pop(id).planned
        return endings

    def _poll_queue(self) -> list[Ending]:
        self.queues.errors.clear()
        jobs = self.queues.jobs([*self._waiting, *self._running])
        if self.queues.errors:
            return []  # not known: the next poll may tell
        self.queues.fetch([job.record for job in jobs.values()])
        endings = self._poll_directories()
        for id, job in jobs.items():
            if id not in self._waiting or job.state.live:
                self._suspects.discard(id)
            elif job.state.state in ("failed", "cancelled") or id in self._suspects:
                endings.append(self._lost(id, job))
            else:  # done or unknown, but the run directory may lag behind: decided at the next poll
                self._suspects.add(id)
        return endings

    def _poll_backlog(self) -> None:
        if self.refill is None:
            return
        accepted = self.refill()
        self._waiting |= {planned.id: planned for planned in accepted}
        if accepted:
            self.queues = Queues(self.runs)
        if not read_backlog(self.runs):
            self.refill = None

    def _lost(self, id: str, job: QueuedJob) -> Ending:
        self.lost += 1
        planned = self._waiting.pop(id)
        self._running[id] = FollowedSession.start(planned, self.runs)
        cancelled = job.state.state == "cancelled" and not job.record.stopped
        why = self.obstacle(planned) if cancelled else None
        return self._ending(id, "resume", why or job.state.reason or f"its job {job.record.job_id} is gone", job)

    def _ending(self, id: str, state: State, reason: str | None, job: QueuedJob | None = None) -> Ending:
        session = self._running.pop(id)
        session.read()
        if state in ("done", "paused"):
            return Ending(session, state)
        own = [] if job is not None and job.never_started else session.last_log_lines()
        log = own or (self.queues.last_lines(job.record) if job else [])
        return Ending(session, state, reason or state, log)
