"""The command `stop`."""

from __future__ import annotations

from rldsl.cli.tables import echo
from rldsl.launch.stop import ask_to_stop
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.words import count
from rldsl.store.session_dir import SessionDir


def stop_sessions(plan: Plan, existing: Existing) -> None:
    """Signals the processes of the plan's running sessions on this machine."""
    running = [one for row in plan.rows() for one in existing.standings(row) if one.report.state == "running"]
    answers = [ask_to_stop(SessionDir(existing.runs / one.directory)) for one in running]
    for refused in filter(None, answers):
        echo(refused)
    echo(f"asked {count(answers.count(None), 'session')} to checkpoint and stop; `resume` goes on")
