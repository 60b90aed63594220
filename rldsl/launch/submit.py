"""Submitting a plan to a queue: sessions that are done or queued are kept, missing ones are submitted."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rldsl.launch.backend import QueueUnavailable, Refused
from rldsl.launch.code import FrozenCode, freeze
from rldsl.launch.devices import has_gpus
from rldsl.launch.fill import fill_jobs, packs_of
from rldsl.launch.job_records import JobRecord
from rldsl.launch.jobs import Job, JobMaker, Resources
from rldsl.launch.queues import QueuedJob, Queues
from rldsl.launch.transaction import submit_jobs
from rldsl.plan.existing import PlannedSession
from rldsl.plan.plan import Plan
from rldsl.spec.gin_text import session_gin
from rldsl.spec.launcher import Launcher
from rldsl.spec.session import session_id
from rldsl.store.session_dir import SessionDir


class Reconciled(NamedTuple):
    """A plan compared with the queues."""

    missing: list[PlannedSession]
    """Sessions without a live job, to be submitted."""
    live: dict[str, QueuedJob]
    """Waiting and running jobs, by session; they are kept."""
    ending: dict[str, QueuedJob]
    """Jobs that were stopped or are completing, by session: whether the session needs another is not known yet."""
    stale: list[JobRecord]
    """Waiting and running jobs of the plan's experiments that the plan no longer contains."""


def reconcile(plan: Plan, wanted: Sequence[PlannedSession], queues: Queues) -> Reconciled:
    """Which of the wanted sessions have a live job, and which live jobs are no longer wanted.

    Raises `QueueUnavailable` if a queue does not answer: its jobs would be submitted a second time.
    """
    names = {part.name for part in plan.parts}
    planned = {session_id(row.id, seed) for row in plan.rows() for seed in row.seeds}
    others = {
        id: record
        for id, record in queues.records.items()
        if record.experiment in names and planned.isdisjoint(record.sessions) and not _is_done(record, queues.runs)
    }
    jobs = queues.jobs([*(session.id for session in wanted), *others])
    if queues.errors:
        errors = "; ".join(dict.fromkeys(queues.errors))
        raise QueueUnavailable(f"{errors}: the jobs in the queue are not known, nothing was submitted")
    stale = {record.job_id: record for id, record in others.items() if jobs[id].live}
    planned_jobs = {id: job for id, job in jobs.items() if id not in others}
    live = {id: job for id, job in planned_jobs.items() if job.live}
    ending = {id: job for id, job in planned_jobs.items() if job.ending}
    missing = [session for session in wanted if session.id not in live and session.id not in ending]
    return Reconciled(missing, live, ending, list(stale.values()))


def _is_done(record: JobRecord, runs: Path) -> bool:
    """Whether all sessions of a job are done, so that its queue need not be asked."""
    return {SessionDir(runs / directory).state() for directory in record.directories} == {"done"}


@dataclass(frozen=True)
class Submitter:
    """Submits sessions of a frozen plan."""

    plan: Path
    runs: Path
    file: Path
    command: Sequence[str]
    launcher: Launcher
    code: FrozenCode | None = None
    """The copy of the code that jobs run; None: a new one."""
    any_code: bool = False
    """Whether sessions that other code started are continued."""

    def submit(self, sessions: Sequence[PlannedSession], after: Sequence[str] = ()) -> list[JobRecord]:
        """Submits jobs that train sessions, in packs of the launcher's choice, to start after other jobs."""
        return self.submit_packs([(pack, None) for pack in packs_of(sessions, self.launcher)], after)

    def submit_packs(
        self, packs: Sequence[tuple[Sequence[PlannedSession], int | None]], after: Sequence[str] = ()
    ) -> list[JobRecord]:
        """Submits jobs for packs, each with the frame up to which it trains, and returns their records.

        Raises `Refused` after the jobs that were accepted are recorded.
        """
        code = self.code or freeze(self.file, self.runs, self.launcher.include)
        for planned in (planned for sessions, _ in packs for planned in sessions):
            _create_directory(planned, self.runs)
        os.sync()
        groups: dict[tuple[str, Resources], list[Job]] = defaultdict(list)
        for job in fill_jobs(list(self._jobs(packs, code)), self.launcher):
            groups[job.name, job.resources].append(replace(job, after=tuple(after)))
        records: list[JobRecord] = []
        for group in groups.values():
            try:
                records += submit_jobs(self.runs, self.launcher, group, code.folder)
            except Refused as error:
                error.ids = [*(record.job_id for record in records), *error.ids]
                raise
        return records

    def _jobs(self, packs: Sequence[tuple[Sequence[PlannedSession], int | None]], code: FrozenCode) -> Iterator[Job]:
        paths = (self.plan.resolve(), self.runs.resolve(), code.file)
        maker = JobMaker(*paths, self.command, gpu=has_gpus(self.launcher), any_code=self.any_code)
        for sessions, until in packs:
            yield replace(maker.job(sessions, until), cwd=code.cwd, path=code.path)


def _create_directory(planned: PlannedSession, runs: Path) -> None:
    """Creates the directory of a session, so that it can be seen while its job waits."""
    session = planned.row.session(planned.seed)
    SessionDir.create(runs, planned.directory, session.record(), session_gin(session), durable=False)
