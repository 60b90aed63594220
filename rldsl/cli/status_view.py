"""The commands `status` and `list`: the states of sessions as a table or as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rldsl.cli.tables import echo, escape, table
from rldsl.launch.queues import QueuedJob, Queues, with_job
from rldsl.launch.search_state import SearchState, search_states, started_plan
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.report.status import STYLES, plan_states
from rldsl.report.words import amount, count, duration
from rldsl.store.layout import LOG
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

COLOURS = {**STYLES, "queued": "magenta"}
MOST_EXPLAINED = 5
LOG_LINES = 4


def show_status(chosen: Sequence[Overridden], runs: Path, as_json: bool) -> None:
    """Shows the sessions of experiments, joined with the queues that have their jobs, why jobs failed, and searches."""
    plan, queues = started_plan(chosen, runs), Queues(runs)
    queues.fetch(queues.of_trials({row.id for row in plan.rows()}))
    sessions = list(plan_states(plan, Existing(runs)))
    jobs = queues.jobs(session.session for session in sessions if session.state not in ("done", "failed"))
    show([with_job(session, jobs.get(session.session)) for session in sessions], as_json)
    if as_json:
        return
    for error in dict.fromkeys(queues.errors):
        echo(f"[yellow]{escape(error)}[/yellow]")
    failed = [one for one in sessions if one.session in jobs and jobs[one.session].state.state == "failed"]
    for session in failed[:MOST_EXPLAINED]:
        _explain(session, jobs[session.session], queues)
    for search in search_states([one for one in chosen if one.experiment.sampled], queues):
        _show_search(search, queues)


def _show_search(search: SearchState, queues: Queues) -> None:
    """How the trials of a search stand and what drives it; the end of the log of a driver that failed."""
    trials = ", ".join(f"{number:,} {state}" for state, number in sorted(search.trials.items()))
    total = f"{search.trials.total():,} of {count(search.planned, 'trial')}"
    driver, failure = search.driver.description, search.driver.failure
    ended = "finished" if search.finished else "nothing drives it, `resume` continues"
    echo(f"[bold]search {search.name}[/bold]: {total}{f': {trials}' if trials else ''}; {escape(driver or ended)}")
    if failure is not None and search.driver.job is not None and not search.finished:
        echo(f"[red]{escape(failure)}[/red]; the last lines of its log:")
        for line in _log_lines(search.driver.directory.path / LOG) or queues.last_lines(search.driver.job.record):
            echo(f"  [dim]{escape(line)}[/dim]")


def _log_lines(log: Path) -> list[str]:
    try:
        return log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    except OSError:
        return []


def _explain(session: SessionState, job: QueuedJob, queues: Queues) -> None:
    """Why a job failed, and the end of its log."""
    lines = _log_lines(SessionDir(Path(session.directory)).log)
    echo(f"[bold]{session.session}[/bold]: [red]{escape(job.state.reason)}[/red]; the last lines of its log:")
    for line in (lines or queues.last_lines(job.record))[-LOG_LINES:]:
        echo(f"  [dim]{escape(line)}[/dim]")


def show(states: Iterable[SessionState], as_json: bool) -> None:
    """Prints sessions as a table with a total, or as JSON."""
    sessions = list(states)
    if as_json:
        print(json.dumps([session.data() for session in sessions], indent=2))  # noqa: T201
        return
    if not sessions:
        echo("there are no sessions")
        return
    names = ["experiment", "session", "state", "frames", "fps", "return", "target", "time", "note"]
    table(names, [_cells(session) for session in sessions], right=("frames", "fps", "return", "target", "time"))
    totals = Counter(session.state for session in sessions)
    total = ", ".join(f"{number:,} {state}" for state, number in totals.items())
    echo(f"[bold]{count(len(sessions), 'session')}[/bold]: {total}")


def _cells(session: SessionState) -> list[str]:
    progress = "" if session.state in ("done", "new") else f"{amount(session.frame)}/"
    return [
        session.experiment,
        session.session,
        f"[{COLOURS[session.state]}]{session.state}[/]",
        progress + amount(session.frames),
        "" if session.fps is None else amount(session.fps),
        "" if session.episode_return is None else f"{session.episode_return:.1f}",
        "" if session.target is None else f"{session.target:g}",
        duration(session.seconds) if session.seconds else "",
        escape(session.note),
    ]
