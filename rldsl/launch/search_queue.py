"""The packs of a search as jobs of a queue, which outlive the driver and the machine that it runs on."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from rldsl.launch.backend import QueueState, Refused
from rldsl.launch.code import FrozenCode
from rldsl.launch.job_records import JobRecord, newest_records, read_records
from rldsl.launch.queues import Queues
from rldsl.launch.search_backend import Ended, SearchPack
from rldsl.launch.submission_lock import submission_lock
from rldsl.launch.submit import Submitter
from rldsl.launch.transaction import settle_submissions
from rldsl.spec.launcher import Launcher
from rldsl.store.session_dir import SessionDir

MOST_JOBS = 16
"""Jobs of a search that wait or run at the same time, if the launcher does not say how many."""
POLL_SECONDS = 1.0
QUEUE_SECONDS = 30.0
"""Seconds between two requests to the queue, and between two attempts to submit jobs that it refused."""


class QueueSearchBackend:
    """Jobs of a queue. The run directory tells which sessions have reached their rung or failed.

    The queue is asked, less often, about jobs that ended without a trace there.
    """

    def __init__(self, runs: Path, code: FrozenCode, command: Sequence[str], launcher: Launcher) -> None:
        self.runs, self.code, self.command, self.launcher = runs, code, command, launcher
        self.refusal: str | None = None
        """Why the queue did not accept the last jobs; they are submitted again."""
        self._records: dict[str, JobRecord] = {}
        """The job of each busy session."""
        self._packs: dict[str, tuple[SessionDir, int | None]] = {}
        """The directory of each busy session, and the frame up to which it trains."""
        self._suspects: set[str] = set()
        self._asked = self._refused = -QUEUE_SECONDS
        self._submitted = False

    @property
    def workers(self) -> int:
        return getattr(self.launcher, "parallel", None) or MOST_JOBS

    @property
    def busy(self) -> Collection[str]:
        return self._records.keys()

    def capacity(self) -> int:
        if self.refusal is not None and time.monotonic() < self._refused + QUEUE_SECONDS:
            return 0
        return max(0, self.workers - len({record.job_id for record in self._records.values()}))

    def adopt(self, packs: Sequence[SearchPack]) -> None:
        """By the records of submitted jobs; raises `QueueUnavailable` if their queue does not answer.

        A job for an earlier rung may still be about to end: it is not adopted.
        """
        with submission_lock(self.runs):
            settle_submissions(self.runs)
        queues = Queues(self.runs)
        jobs = queues.jobs(planned.id for pack in packs for planned in pack.sessions)
        queues.refuse_errors()
        self._asked = time.monotonic()
        queues.fetch(job.record for job in jobs.values())
        until = {planned.id: pack.until for pack in packs for planned in pack.sessions}
        live = {id: job.record for id, job in jobs.items() if job.live}
        self._add(packs, {id: record for id, record in live.items() if record.until == until[id]})

    def start(self, plan: Path, packs: Sequence[SearchPack]) -> None:
        """Submits a job for each pack. Those that the queue refuses are submitted again later, but the first ones."""
        submitter = Submitter(plan, self.runs, self.code.file, self.command, self.launcher, self.code)
        self.refusal, earlier = None, len(read_records(self.runs))
        try:
            records = submitter.submit_packs(packs)
        except Refused as error:
            records = read_records(self.runs)[earlier:]
            if not self._submitted and not records:
                raise
            self.refusal, self._refused = str(error), time.monotonic()
        self._submitted = True
        self._add(packs, newest_records(records))

    def poll(self) -> list[Ended]:
        ended = self._poll_directories()
        if self._records and time.monotonic() >= self._asked + QUEUE_SECONDS:
            self._asked = time.monotonic()
            ended += self._poll_queue()
        return ended

    def pause(self) -> float:
        return POLL_SECONDS

    def interrupt(self, requests: int) -> bool:
        """The jobs continue without the driver."""
        return False

    def cancel(self) -> None:
        Queues(self.runs).cancel(self._records.values())

    def abort(self) -> None:
        """The jobs continue, and the next driver adopts them."""

    def _add(self, packs: Sequence[SearchPack], records: Mapping[str, JobRecord]) -> None:
        """Sessions of these packs that have a record are busy from now on."""
        for sessions, until in packs:
            for planned in sessions:
                if planned.id in records:
                    self._records[planned.id] = records[planned.id]
                    self._packs[planned.id] = (SessionDir(self.runs / planned.directory), until)

    def _poll_directories(self) -> list[Ended]:
        """Sessions that have failed, not before their job was submitted, or that have nothing left to train."""
        states = {id: directory.read_state() for id, (directory, _) in self._packs.items()}
        return [
            self._end(id)
            for id, state in states.items()
            if state.last_event == state.state == "failed" or state.reached(self._packs[id][1])
        ]

    def _poll_queue(self) -> list[Ended]:
        """Sessions whose jobs have ended; of a job that is done or unknown only when asked a second time.

        The run directory may lag behind its queue.
        """
        queues = Queues(self.runs)
        jobs = queues.jobs(self._records)
        if queues.errors:
            return []  # not known: the next poll may tell
        queues.fetch(job.record for job in jobs.values())
        ended = self._poll_directories()
        for id, job in jobs.items():
            if id not in self._records or job.state.live:
                self._suspects.discard(id)
            elif job.state.state in ("failed", "cancelled") or id in self._suspects:
                ended.append(self._end(id, _problem(job.state)))
            else:
                self._suspects.add(id)
        return ended

    def _end(self, id: str, problem: str | None = None) -> Ended:
        del self._records[id], self._packs[id]
        self._suspects.discard(id)
        return Ended(id, problem)


def _problem(state: QueueState) -> str:
    return state.reason or f"its job is {state.state}"
