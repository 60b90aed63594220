"""Queued jobs: the job records of a run directory joined with the states that the queues report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Set
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rldsl.launch.backend import SETUP_FAILED, Backend, QueueState, QueueUnavailable, Spending, Usage, backend_for
from rldsl.launch.job_records import JobRecord, newest_records, read_records, record_stop
from rldsl.launch.profiles import load_project_launchers
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Launcher
from rldsl.store.errors import StoreError
from rldsl.store.session_state import SessionState

UNKNOWN = QueueState()
SILENT = QueueState("unknown", "unknown: the queue did not answer")


class QueuedJob(NamedTuple):
    """The newest job of a session, and its state according to the queue."""

    record: JobRecord
    state: QueueState

    @property
    def live(self) -> bool:
        """Whether it waits or runs, and goes on to do so."""
        return self.state.state in ("pending", "running") and not self.record.stopped

    @property
    def never_started(self) -> bool:
        """Whether it failed before its sessions began, so that their logs are those of earlier jobs."""
        return self.state.reason.startswith(SETUP_FAILED)

    @property
    def ending(self) -> bool:
        """Whether it is about to end: it was stopped, or its queue is completing it. It may also be requeued."""
        return self.state.live and not self.live


class Queues:
    """All jobs that were submitted from a run directory. Each queue is asked once about all of its jobs."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.all_records = read_records(runs)
        self.records = newest_records(self.all_records)
        """The newest job record of each session."""
        self.errors: list[str] = []
        """Why queues could not be asked."""
        if any(record.backend not in Launcher.kinds for record in self.records.values()):
            load_project_launchers()

    def jobs(self, sessions: Iterable[str]) -> dict[str, QueuedJob]:
        """The newest jobs of these sessions; sessions that were never submitted are left out."""
        chosen = {id: self.records[id] for id in sessions if id in self.records}
        states = self._states(chosen.values())
        return {id: QueuedJob(record, states.get(record.job_id, UNKNOWN)) for id, record in chosen.items()}

    def job(self, record: JobRecord) -> QueuedJob:
        """A job with its state."""
        return QueuedJob(record, self._states([record]).get(record.job_id, UNKNOWN))

    def refuse_errors(self) -> None:
        """Raises `QueueUnavailable` if a queue could not be asked."""
        if self.errors:
            raise QueueUnavailable(f"{'; '.join(dict.fromkeys(self.errors))}: the jobs in the queue are not known")

    def of_trials(self, trials: Collection[str]) -> list[JobRecord]:
        """The newest job records of the sessions of these trials."""
        return [record for id, record in self.records.items() if id.rpartition("-s")[0] in trials]

    def cancel(self, records: Iterable[JobRecord]) -> list[str]:
        """Cancels jobs, which is recorded first; returns a sentence for each queue that refused."""
        records, refusals = list(records), []
        if records:
            record_stop(self.runs, records)
        for backend, group in self._by_backend(records):
            try:
                backend.cancel([record.job_id for record in group])
            except StoreError as error:
                refusals.append(str(error))
        return refusals

    def fetch(self, records: Iterable[JobRecord]) -> None:
        """Copies results into the run directory where the filesystem is not shared."""
        for backend, group in self._by_backend(records):
            try:
                backend.fetch(group)
            except StoreError as error:
                self.errors.append(str(error))

    def usage(self, sessions: Collection[str]) -> Usage:
        """What all jobs of these sessions have used, as far as their queues keep accounts."""
        chosen = set(sessions)
        records = [one for one in self.all_records if not chosen.isdisjoint(one.sessions)]
        used = [
            backend.usage([record.job_id for record in group])
            for backend, group in self._by_backend(records)
            if hasattr(backend, "usage")
        ]
        return Usage(sum(one.core_hours for one in used), sum(one.gpu_hours for one in used))

    def last_lines(self, record: JobRecord) -> list[str]:
        """The end of a job's output, as far as its queue has it."""
        return backend_for(record.spec(), self.runs).last_lines(record)

    def spending(self, trials: Set[str]) -> Spending:
        """What all jobs of these trials have cost, earlier ones included, on backends that know prices."""
        records = [record for record in self.all_records if trials & {_trial(id) for id in record.sessions}]
        total = Spending()
        for backend, group in self._by_backend(records):
            if (spending := getattr(backend, "spending", None)) is not None:
                try:
                    one = spending([record.job_id for record in group])
                except StoreError as error:
                    self.errors.append(str(error))
                    continue
                total = Spending(total.cost + one.cost, total.per_hour + one.per_hour)
        return total

    def _states(self, records: Iterable[JobRecord]) -> dict[str, QueueState]:
        states: dict[str, QueueState] = {}
        for backend, group in self._by_backend(records):
            try:
                states |= backend.states([record.job_id for record in group])
            except StoreError as error:
                self.errors.append(str(error))
                states |= dict.fromkeys((record.job_id for record in group), SILENT)
        return states

    def _by_backend(self, records: Iterable[JobRecord]) -> list[tuple[Backend, list[JobRecord]]]:
        """Each queue with its jobs, every job once."""
        by_launcher: dict[int, dict[str, JobRecord]] = defaultdict(dict)
        for record in records:  # the records of a file share equal launchers
            by_launcher[id(record.launcher)][record.job_id] = record
        backends: dict[str, Backend] = {}
        groups: dict[str, list[JobRecord]] = defaultdict(list)
        for jobs in by_launcher.values():
            try:
                launcher = next(iter(jobs.values())).spec()
                if launcher.queue not in backends:
                    backends[launcher.queue] = backend_for(launcher, self.runs)
            except SpecError as error:
                self.errors.append(str(error))
                continue
            groups[launcher.queue] += jobs.values()
        return [(backends[queue], group) for queue, group in groups.items()]


def _trial(session: str) -> str:
    return session.rpartition("-s")[0]


def with_job(state: SessionState, job: QueuedJob | None) -> SessionState:
    """The state of a session, joined with what its queue says about its newest job."""
    if job is None:
        return state
    name, queue = f"{job.record.backend} job {job.record.job_id}", job.state
    if queue.state == "pending" and state.state != "running":
        return replace(state, state="queued", reason=f"{name}{f': {queue.reason}' if queue.reason else ''}")
    if job.ending:
        where = f" on {queue.where}" if queue.where else ""
        return replace(state, reason=f"{'stopping' if job.record.stopped else 'completing'}{where}, {name}")
    if queue.state == "running":
        begins = "" if state.state == "running" else "starts "
        return replace(state, state="running", reason=f"{begins}on {queue.where}, {name}" if queue.where else name)
    if state.state == "running":
        return replace(state, reason=name)
    if state.state == "paused" and queue.state == "done":
        return state
    why = queue.reason or {"done": "ended", "unknown": "not known to its queue"}.get(queue.state, queue.state)
    return replace(state, reason="; ".join(filter(None, [f"{name}: {why}", state.reason])))
