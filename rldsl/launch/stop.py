"""Stopping sessions: jobs are cancelled by their queue, processes of this machine are asked to checkpoint and stop."""

from __future__ import annotations

import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rldsl.launch.queues import Queues
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.claim import read_heartbeat
from rldsl.store.processes import ProcessId
from rldsl.store.session_dir import SessionDir
from rldsl.store.stop_requests import request_stop


@dataclass(frozen=True)
class StopResult:
    """What `stop_sessions` did."""

    jobs: int
    """Jobs that were cancelled, if there are no refusals."""
    sessions: int
    """Sessions of the plan in those jobs."""
    others: Sequence[str] = ()
    """Other sessions in the same jobs, which were cancelled with them."""
    asked: int = 0
    """Sessions of this machine that were asked to stop."""
    refusals: Sequence[str] = ()
    """Why queues did not cancel their jobs."""
    chosen: Collection[str] = ()
    """All sessions that were to be stopped."""
    problems: Sequence[str] = field(default=())
    """Why queues and processes could not be asked."""


def stop_sessions(plan: Plan, existing: Existing, only: Sequence[str] = ()) -> StopResult:
    """Cancels the jobs of a plan's sessions and stops those that run without a job; `only` are session or trial ids."""
    sessions = _chosen({planned.id: planned for planned in existing.sessions(plan)}, only)
    queues = Queues(existing.runs)
    jobs = queues.jobs(id for id, planned in sessions.items() if planned.state not in ("done", "failed"))
    live = {id: job.record for id, job in jobs.items() if job.state.state in ("pending", "running")}
    records = {record.job_id: record for record in live.values()}
    refusals = queues.cancel(records.values())
    ending = {id for id, job in jobs.items() if job.state.live}
    here = [planned for id, planned in sessions.items() if planned.state == "running" and id not in ending]
    waiting = [id for id, one in sessions.items() if id not in jobs and one.state not in ("running", "done", "failed")]
    request_stop(existing.runs, waiting)  # before the others stop: a command in the foreground would start these then
    problems = [ask_to_stop(SessionDir(existing.runs / planned.directory)) for planned in here]
    others = {id for record in records.values() for id in record.sessions} - live.keys()
    return StopResult(
        jobs=len(records),
        sessions=len(live),
        others=sorted(others),
        asked=problems.count(None),
        refusals=refusals,
        chosen=sessions.keys(),
        problems=[*queues.errors, *filter(None, problems)],
    )


def _chosen(sessions: dict[str, PlannedSession], only: Sequence[str]) -> dict[str, PlannedSession]:
    """The sessions with one of these ids, or of a trial with one of them."""
    for name in only:
        if not any(name in (id, planned.row.id) for id, planned in sessions.items()):
            raise SpecError(f"--session {name}: there is no such session; {suggestion(name, sessions)}")
    return {id: planned for id, planned in sessions.items() if not only or id in only or planned.row.id in only}


def holder(directory: SessionDir) -> ProcessId | None:
    """The process that trains a session, by its heartbeat; the members of a pack have the same one."""
    return ProcessId.parse(read_heartbeat(directory.alive))


def ask_to_stop(directory: SessionDir) -> str | None:
    """Sends SIGTERM to the process of a session on this machine; returns a sentence if that is not possible."""
    process = holder(directory)
    if process is None:
        return f"{directory.id} does not run any more"
    if not process.here:
        return f"{directory.id} runs on {process.host}: stop it there"
    try:
        return None if process.send_signal(signal.SIGTERM) else f"{directory.id} does not run any more"
    except PermissionError:
        return f"{directory.id} belongs to another user"
