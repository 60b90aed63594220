"""The command `stop`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rldsl.cli.tables import echo, escape
from rldsl.launch.queues import Queues
from rldsl.launch.search_detach import stop_driver
from rldsl.launch.search_state import search_states, started_plan
from rldsl.launch.stop import stop_sessions
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.report.words import count
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError


def stop(chosen: Sequence[Overridden], runs: Path, only: Sequence[str] = ()) -> None:
    """Stops searches and sessions of experiments and prints what was done."""
    stopped = _stop_searches([one for one in chosen if one.experiment.sampled], runs, only)
    result = stop_sessions(started_plan(chosen, runs), Existing(runs), only)
    for sentence in (*result.problems, *result.refusals):
        echo(escape(sentence))
    if result.jobs and not result.refusals:
        others = f", and with them {', '.join(result.others)}" if result.others else ""
        cancelled = f"{count(result.jobs, 'job')} of {count(result.sessions, 'session')}"
        echo(f"cancelled {cancelled}{others}; `resume` continues")
    if result.asked or not (result.jobs or stopped):
        echo(f"asked {count(result.asked, 'session')} to checkpoint and stop; `resume` continues")


def _stop_searches(searches: Sequence[Overridden], runs: Path, only: Sequence[str]) -> bool:
    """Stops what drives the searches, before their sessions: it would start them again. Returns whether it did."""
    queues = Queues(runs)
    driven = [state for state in search_states(searches, queues) if state.driver.description]
    trials = {row.id for one in searches for row in started_plan([one], runs).rows()} if driven and only else set()
    for name in only:
        if {name, name.rpartition("-s")[0]} & trials:
            raise SpecError(f"{name} belongs to a search, which would start it again: stop the search with --only")
    if only:
        return False
    problems = [(state.name, stop_driver(state.driver, queues)) for state in driven]
    for name, problem in problems:
        if problem is None:
            echo(f"stopped the driver of the search {name}; `resume` continues")
    if remaining := [problem for _, problem in problems if problem is not None]:
        raise StoreError("; ".join(remaining))
    return bool(problems)
