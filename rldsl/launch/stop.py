"""Stopping sessions: jobs are cancelled by their queue, processes of this machine are asked to checkpoint and stop."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rldsl.launch.queues import Queues
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.claim import read_heartbeat
from rldsl.store.processes import host_name
from rldsl.store.session_dir import SessionDir


class Holder(NamedTuple):
    """The process that trains a session."""

    host: str
    pid: int


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
    problems: Sequence[str] = field(default=())
    """Why queues and processes could not be asked."""


def stop_sessions(plan: Plan, existing: Existing, only: Sequence[str] = ()) -> StopResult:
    """Cancels the jobs of a plan's sessions and stops those that run without a job; `only` are session or trial ids."""
    sessions = _chosen({planned.id: planned for planned in existing.sessions(plan)}, only)
    queues = Queues(existing.runs)
    jobs = queues.jobs(id for id, planned in sessions.items() if planned.state not in ("done", "failed"))
    live = {id: job.record for id, job in jobs.items() if job.state.live}
    records = {record.job_id: record for record in live.values()}
    refusals = queues.cancel(records.values())
    here = [planned for id, planned in sessions.items() if planned.state == "running" and id not in live]
    problems = [ask_to_stop(SessionDir(existing.runs / planned.directory)) for planned in here]
    others = {id for record in records.values() for id in record.sessions} - live.keys()
    return StopResult(
        jobs=len(records),
        sessions=len(live),
        others=sorted(others),
        asked=problems.count(None),
        refusals=refusals,
        problems=[*queues.errors, *filter(None, problems)],
    )


def _chosen(sessions: dict[str, PlannedSession], only: Sequence[str]) -> dict[str, PlannedSession]:
    """The sessions with one of these ids, or of a trial with one of them."""
    for name in only:
        if not any(name in (id, planned.row.id) for id, planned in sessions.items()):
            raise SpecError(f"--session {name}: there is no such session; {suggestion(name, sessions)}")
    return {id: planned for id, planned in sessions.items() if not only or id in only or planned.row.id in only}


def holder(directory: SessionDir) -> Holder | None:
    """The process that trains a session, by its heartbeat; the members of a pack have the same one."""
    beat = read_heartbeat(directory.alive) or {}
    host, pid = beat.get("host"), beat.get("pid")
    return Holder(host, pid) if isinstance(host, str) and isinstance(pid, int) else None


def ask_to_stop(directory: SessionDir) -> str | None:
    """Sends SIGTERM to the process of a session on this machine; returns a sentence if that is not possible."""
    process = holder(directory)
    if process is None:
        return f"{directory.id} does not run any more"
    if process.host != host_name():
        return f"{directory.id} runs on {process.host}: stop it there"
    try:
        os.kill(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        return f"{directory.id} does not run any more"
    except PermissionError:
        return f"{directory.id} belongs to another user"
    return None
