"""A plan and a launcher become jobs in a queue: what is done or live stays, what is missing or failed is submitted."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rldsl.launch.code import freeze_code, frozen_path, project_root, python_path
from rldsl.launch.contract import QueueSilent, Refused, place_of
from rldsl.launch.jobs import Job, JobMaker, Resources
from rldsl.launch.local import processes
from rldsl.launch.queues import QueuedJob, Queues
from rldsl.launch.tickets import Ticket, new_submission, ticket_of, write_tickets
from rldsl.plan.existing import PlannedSession
from rldsl.plan.packs import make_packs
from rldsl.plan.plan import Plan
from rldsl.spec.gin_text import session_gin
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.session import Session, session_id
from rldsl.store.journal import Journal
from rldsl.store.session_dir import SessionDir


class Reconciled(NamedTuple):
    """A plan against the queues."""

    missing: list[PlannedSession]
    """Not in any queue: to be submitted."""
    live: dict[str, QueuedJob]
    """Waiting or running, by session: kept."""
    stale: list[Ticket]
    """Waiting or running, and no longer in the plan."""


def reconcile(plan: Plan, wanted: Sequence[PlannedSession], queues: Queues) -> Reconciled:
    """Which of the sessions that should run do so already, and which jobs run that should not.

    A queue that does not answer is an error: what it has would be submitted a second time.
    """
    names = {part.name for part in plan.parts}
    planned = {session_id(row.id, seed) for row in plan.rows() for seed in row.seeds}
    others = [
        id
        for id, ticket in queues.tickets.items()
        if ticket.experiment in names and planned.isdisjoint(ticket.sessions) and not _is_done(ticket, queues.runs)
    ]
    held = queues.held([*(one.id for one in wanted), *others])
    if queues.notes:
        raise QueueSilent(f"{'; '.join(dict.fromkeys(queues.notes))}: what it has is not known, nothing was submitted")
    live = {id: one for id, one in held.items() if one.state.live}
    stale = {live[id].ticket.job_id: live[id].ticket for id in others if id in live}
    return Reconciled([one for one in wanted if one.id not in live], live, list(stale.values()))


def packs_of(planned_sessions: Sequence[PlannedSession], launcher: Launcher) -> list[list[PlannedSession]]:
    """Sessions as jobs have them: together as far as it pays, and on this machine no more than keeps it busy."""
    on_gpu = any(one.row.trial.compute.device != "cpu" for one in planned_sessions)
    spread = processes(launcher, on_gpu) if isinstance(launcher, Local) else 1
    return make_packs(planned_sessions, spread, launcher.members)


def _is_done(ticket: Ticket, runs: Path) -> bool:
    """Whether all that a job was for is done: its queue need not be asked."""
    states = {SessionDir(runs / directory).state() for directory in ticket.directories}
    return states == {"done"}


@dataclass(frozen=True)
class Submitter:
    """Submits sessions of one frozen plan."""

    plan: Path
    runs: Path
    file: Path
    origin: Sequence[str]
    launcher: Launcher

    def submit(self, planned_sessions: Sequence[PlannedSession]) -> list[Ticket]:
        """A ticket for each job that the queue took; raises `Refused` after those are written down."""
        code = freeze_code(self.file, self.runs)
        for one in planned_sessions:
            _create(one, self.runs)
        os.sync()
        groups: dict[Resources, list[Job]] = defaultdict(list)
        for job in self._jobs(planned_sessions, code):
            groups[job.resources].append(job)
        return [ticket for group in groups.values() for ticket in self._submit_group(group, code)]

    def _jobs(self, planned_sessions: Sequence[PlannedSession], code: Path) -> Iterator[Job]:
        root = project_root(self.file)
        file, cwd = frozen_path(code, self.file, root), frozen_path(code, Path.cwd(), root)
        maker = JobMaker(self.plan.resolve(), self.runs.resolve(), file, self.origin)
        for pack in packs_of(planned_sessions, self.launcher):
            yield replace(maker.job(pack), cwd=cwd if cwd.is_dir() else file.parent, path=python_path(code, root))

    def _submit_group(self, jobs: Sequence[Job], code: Path) -> list[Ticket]:
        folder = new_submission(self.runs)
        refused = None
        try:
            ids = place_of(self.launcher, self.runs).submit(jobs, code, folder)
        except Refused as error:
            ids, refused = error.ids, error
        pairs = zip(jobs, ids, strict=False)
        tickets = [ticket_of(job, id, folder.name, self.launcher, self.runs) for job, id in pairs]
        write_tickets(self.runs, tickets)
        for ticket in tickets:
            _tell(ticket, self.runs)
        if refused is not None:
            raise refused
        return tickets


def _create(one: PlannedSession, runs: Path) -> None:
    """The directory of a session, so that it can be seen while it waits."""
    row = one.row
    session = Session(
        experiment=row.experiment, trial=row.trial, seed=one.seed, target=row.target, overrides=row.overrides
    )
    SessionDir.create(runs, one.directory, session.record(), session_gin(session), durable=False)


def _tell(ticket: Ticket, runs: Path) -> None:
    """Each session knows its job; of one on this machine its own process will tell."""
    if ticket.place == Local.model_fields["kind"].default:
        return
    for directory in ticket.directories:
        journal = Journal(SessionDir(runs / directory).journal.path, durable=False)
        journal.append("submitted", place=ticket.place, job_id=ticket.job_id, submission=ticket.submission)
