"""Submitting a plan to a queue: sessions that are done or queued are kept, missing ones are submitted."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rldsl.launch.backend import QueueUnavailable, Refused, backend_for
from rldsl.launch.code import FrozenCode, freeze
from rldsl.launch.job_records import JobRecord, new_submission, record_of, write_records
from rldsl.launch.jobs import Job, JobMaker, Resources
from rldsl.launch.local import processes
from rldsl.launch.queues import QueuedJob, Queues
from rldsl.plan.existing import PlannedSession
from rldsl.plan.packs import make_packs
from rldsl.plan.plan import Plan
from rldsl.spec.gin_text import session_gin
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.session import session_id
from rldsl.store.journal import Journal
from rldsl.store.session_dir import SessionDir


class Reconciled(NamedTuple):
    """A plan compared with the queues."""

    missing: list[PlannedSession]
    """Sessions without a live job, to be submitted."""
    live: dict[str, QueuedJob]
    """Waiting and running jobs, by session; they are kept."""
    stale: list[JobRecord]
    """Waiting and running jobs of the plan's experiments that the plan no longer contains."""


def reconcile(plan: Plan, wanted: Sequence[PlannedSession], queues: Queues) -> Reconciled:
    """Which of the wanted sessions have a live job, and which live jobs are no longer wanted.

    Raises `QueueUnavailable` if a queue does not answer: its jobs would be submitted a second time.
    """
    names = {part.name for part in plan.parts}
    planned = {session_id(row.id, seed) for row in plan.rows() for seed in row.seeds}
    others = [
        id
        for id, record in queues.records.items()
        if record.experiment in names and planned.isdisjoint(record.sessions) and not _is_done(record, queues.runs)
    ]
    jobs = queues.jobs([*(session.id for session in wanted), *others])
    if queues.errors:
        errors = "; ".join(dict.fromkeys(queues.errors))
        raise QueueUnavailable(f"{errors}: the jobs in the queue are not known, nothing was submitted")
    live = {id: job for id, job in jobs.items() if job.state.live}
    stale = {live[id].record.job_id: live[id].record for id in others if id in live}
    return Reconciled([session for session in wanted if session.id not in live], live, list(stale.values()))


def packs_of(sessions: Sequence[PlannedSession], launcher: Launcher) -> list[list[PlannedSession]]:
    """Packs of sessions, one for each job; on this machine there are at least as many as processes, if possible."""
    on_gpu = any(planned.row.trial.compute.device != "cpu" for planned in sessions)
    parallel = processes(launcher, on_gpu) if isinstance(launcher, Local) else 1
    return make_packs(sessions, parallel, launcher.members)


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

    def submit(self, sessions: Sequence[PlannedSession], until: int | None = None) -> list[JobRecord]:
        """Submits jobs that train sessions, given a frame up to that frame, in packs of the launcher's choice."""
        return self.submit_packs([(pack, until) for pack in packs_of(sessions, self.launcher)])

    def submit_packs(self, packs: Sequence[tuple[Sequence[PlannedSession], int | None]]) -> list[JobRecord]:
        """Submits a job for each pack, with the frame up to which it trains, and returns their records.

        Raises `Refused` after the jobs that were accepted are recorded.
        """
        code = self.code or freeze(self.file, self.runs)
        for planned in (planned for sessions, _ in packs for planned in sessions):
            _create_directory(planned, self.runs)
        os.sync()
        groups: dict[Resources, list[Job]] = defaultdict(list)
        for job in self._jobs(packs, code):
            groups[job.resources].append(job)
        return [record for group in groups.values() for record in self._submit_group(group, code.folder)]

    def _jobs(self, packs: Sequence[tuple[Sequence[PlannedSession], int | None]], code: FrozenCode) -> Iterator[Job]:
        maker = JobMaker(self.plan.resolve(), self.runs.resolve(), code.file, self.command)
        for sessions, until in packs:
            yield replace(maker.job(sessions, until), cwd=code.cwd, path=code.path)

    def _submit_group(self, jobs: Sequence[Job], code: Path) -> list[JobRecord]:
        folder = new_submission(self.runs)
        refused = None
        try:
            ids = backend_for(self.launcher, self.runs).submit(jobs, code, folder)
        except Refused as error:
            ids, refused = error.ids, error
        accepted = zip(jobs, ids, strict=False)
        records = [record_of(job, id, folder.name, self.launcher, self.runs) for job, id in accepted]
        write_records(self.runs, records)
        for record in records:
            _write_to_journals(record, self.runs)
        if refused is not None:
            raise refused
        return records


def _create_directory(planned: PlannedSession, runs: Path) -> None:
    """Creates the directory of a session, so that it can be seen while its job waits."""
    session = planned.row.session(planned.seed)
    SessionDir.create(runs, planned.directory, session.record(), session_gin(session), durable=False)


def _write_to_journals(record: JobRecord, runs: Path) -> None:
    """Records a job in the journals of its sessions; not for this machine, where the process itself does so."""
    if record.backend == Local.model_fields["kind"].default:
        return
    for directory in record.directories:
        journal = Journal(SessionDir(runs / directory).journal.path, durable=False)
        journal.append("submitted", place=record.backend, job_id=record.job_id, submission=record.submission)
