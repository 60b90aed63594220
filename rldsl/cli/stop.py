"""The command `stop`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from rldsl.cli.selected import Selected
from rldsl.cli.tables import echo, escape
from rldsl.launch.backlog import drop_backlog
from rldsl.launch.job_records import JOBS
from rldsl.launch.queues import Queues
from rldsl.launch.search_detach import stop_driver
from rldsl.launch.search_state import search_states, started_plan
from rldsl.launch.stop import stop_sessions
from rldsl.launch.submission_lock import submission_lock
from rldsl.launch.transaction import try_to_settle
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.report.words import count
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError


def stop(selected: Selected, runs: Path, only: Sequence[str] = ()) -> None:
    """Stops searches and sessions of experiments and prints what was done."""
    stopped = _stop_searches([one for one in selected.experiments if one.experiment.sampled], runs, only)
    with submission_lock(runs, _waiting) if (runs / JOBS).is_dir() else nullcontext():
        for note in try_to_settle(runs):
            echo(escape(note))
        result = stop_sessions(selected.started(runs), Existing(runs), only)
        unsubmitted = drop_backlog(runs, result.chosen)
    for sentence in (*result.problems, *result.refusals):
        echo(escape(sentence))
    if result.jobs and not result.refusals:
        others = f", and with them {', '.join(result.others)}" if result.others else ""
        cancelled = f"{count(result.jobs, 'job')} of {count(result.sessions, 'session')}"
        echo(f"cancelled {cancelled}{others}; `resume` continues")
    if unsubmitted:
        echo(f"{count(unsubmitted, 'session')} of the backlog will not be submitted")
    if not (result.asked or result.jobs or result.problems or stopped or unsubmitted):
        echo("nothing is running")
    elif result.asked:
        echo(f"asked {count(result.asked, 'session')} to checkpoint and stop; `resume` continues")


def _waiting(holder: str) -> None:
    echo(escape(f"{holder}: waiting until it has finished"))


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
