"""The command `stop`."""

from __future__ import annotations

from collections.abc import Sequence

from rldsl.cli.tables import echo, escape
from rldsl.launch.stop import stop_sessions
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.words import count


def stop(plan: Plan, existing: Existing, only: Sequence[str] = ()) -> None:
    """Stops the sessions of a plan and prints what was done."""
    result = stop_sessions(plan, existing, only)
    for sentence in (*result.problems, *result.refusals):
        echo(escape(sentence))
    if result.jobs and not result.refusals:
        others = f", and with them {', '.join(result.others)}" if result.others else ""
        cancelled = f"{count(result.jobs, 'job')} of {count(result.sessions, 'session')}"
        echo(f"cancelled {cancelled}{others}; `resume` continues")
    if result.asked or not result.jobs:
        echo(f"asked {count(result.asked, 'session')} to checkpoint and stop; `resume` continues")
