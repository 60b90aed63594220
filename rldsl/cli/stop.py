"""The command `stop`: sessions here and in queues."""

from __future__ import annotations

from collections.abc import Sequence

from rldsl.cli.status_view import known_queues
from rldsl.cli.tables import echo, escape
from rldsl.launch.stop import ask_to_stop
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.report.words import count
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.session_dir import SessionDir


def stop_sessions(plan: Plan, existing: Existing, only: Sequence[str] = ()) -> None:
    """Cancels the jobs of the plan's sessions, and signals the processes of those that run here without one."""
    planned_sessions = _chosen({one.id: one for row in plan.rows() for one in existing.planned(row)}, only)
    queues = known_queues(existing.runs)
    held = queues.held(id for id, one in planned_sessions.items() if one.report.state not in ("done", "failed"))
    live = {id: one.ticket for id, one in held.items() if one.state.live}
    jobs = {ticket.job_id: ticket for ticket in live.values()}
    refused = queues.cancel(jobs.values())
    here = [one for id, one in planned_sessions.items() if one.report.state == "running" and id not in live]
    answers = [ask_to_stop(SessionDir(existing.runs / one.directory)) for one in here]
    for sentence in (*queues.notes, *refused, *filter(None, answers)):
        echo(escape(sentence))
    if jobs and not refused:
        also = {id for ticket in jobs.values() for id in ticket.sessions} - live.keys()
        more = f", and with them {', '.join(sorted(also))}" if also else ""
        echo(f"cancelled {count(len(jobs), 'job')} of {count(len(live), 'session')}{more}; `resume` goes on")
    if here or not jobs:
        echo(f"asked {count(answers.count(None), 'session')} to checkpoint and stop; `resume` goes on")


def _chosen(planned_sessions: dict[str, PlannedSession], only: Sequence[str]) -> dict[str, PlannedSession]:
    """By whole ids of sessions, or by ids of trials."""
    for name in only:
        if not any(name in (id, one.row.id) for id, one in planned_sessions.items()):
            raise SpecError(f"--session {name}: there is no such session; {suggestion(name, planned_sessions)}")
    return {id: one for id, one in planned_sessions.items() if not only or id in only or one.row.id in only}
