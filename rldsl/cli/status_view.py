"""The commands `status` and `list`: the states of sessions as a table or as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from rldsl.cli.selected import Selected, override_notes
from rldsl.cli.tables import echo, escape, table
from rldsl.launch.backlog import read_backlog
from rldsl.launch.queues import QueuedJob, Queues, with_job
from rldsl.launch.search_state import SearchState, search_states
from rldsl.launch.transaction import try_to_settle
from rldsl.plan.after import Awaited, awaited, obstacle
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import STYLES, plan_states, set_aside_states
from rldsl.report.words import amount, count, duration, settings_text
from rldsl.spec.session import session_id
from rldsl.store.code_version import CodeVersions
from rldsl.store.layout import LOG
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState
from rldsl.store.set_aside import all_set_aside

COLOURS = {**STYLES, "queued": "magenta"}
MOST_EXPLAINED = 5
LOG_LINES = 4


def show_status(selected: Selected, runs: Path, as_json: bool) -> None:
    """Shows the sessions of experiments, joined with the queues that have their jobs, why jobs failed, and searches."""
    notes = try_to_settle(runs)
    chosen, file = selected.experiments, selected.file
    plan, queues = selected.started(runs), Queues(runs)
    queues.fetch(queues.of_trials({row.id for row in chain(plan.rows(), plan.needed())}))
    existing = Existing(runs, CodeVersions(file))
    sessions = list(plan_states(plan, existing))
    jobs = queues.jobs(session.session for session in sessions if session.state not in ("done", "failed"))
    backlog = read_backlog(runs)
    waits = awaited(plan, existing)
    joined = [
        _with_needs(_joined(session, jobs.get(session.session), backlog), waits.get(session.experiment))
        for session in sessions
    ]
    show(joined, as_json, settings_of(plan))
    if as_json:
        return
    begun = {session.session for session in sessions if session.attempts}
    for words in (queues.spending({row.id for row in plan.rows()}).words, queues.usage(begun).words):
        if words:
            echo(words)
    searches = search_states([one for one in chosen if one.experiment.sampled], queues)
    for note in override_notes(plan, [one.session for one in sessions if one.state != "new"]):
        echo(f"[dim]some were trained with {escape(note)}[/dim]")
    shown = {session.directory for session in sessions}
    if older := sum(str(directory) in shown for _, directory in all_set_aside(runs)):
        echo(f"[dim]{count(older, 'older session')} set aside: `rldsl list --aside`[/dim]")
    for error in dict.fromkeys((*notes, *queues.errors)):
        echo(f"[yellow]{escape(error)}[/yellow]")
    failed = [one for one in sessions if one.session in jobs and jobs[one.session].state.state == "failed"]
    for session in failed[:MOST_EXPLAINED]:
        _explain(session, jobs[session.session], queues)
    for search in searches:
        _show_search(search, queues)


def _joined(session: SessionState, job: QueuedJob | None, backlog: Mapping[str, str]) -> SessionState:
    """A session with what its queue says; one of the backlog counts as queued."""
    joined = with_job(session, job)
    if session.session not in backlog or joined.state in ("done", "running", "queued"):
        return joined
    return replace(joined, state="queued", reason=f"not submitted yet: {backlog[session.session]}")


def _with_needs(session: SessionState, waits: Awaited | None) -> SessionState:
    """A session that comes after others with what it waits for, or why it was not started."""
    if waits is None or not waits.needs or session.state in ("done", "running", "failed"):
        return session
    words = waits.words if session.state == "queued" else obstacle(waits.needs, ()) or waits.words
    return replace(session, reason="; ".join(filter(None, [words, session.reason])))


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
    lines = [] if job.never_started else _log_lines(SessionDir(Path(session.directory)).log)
    echo(f"[bold]{session.session}[/bold]: [red]{escape(job.state.reason)}[/red]; the last lines of its log:")
    for line in (lines or queues.last_lines(job.record))[-LOG_LINES:]:
        echo(f"  [dim]{escape(line)}[/dim]")


DROPPED = ("device", "time", "fps", "target", "experiment")
"""Columns that narrow terminals do without, in this order."""


def settings_of(plan: Plan) -> dict[str, str]:
    """By session, what tells its trial from the others of its experiment."""
    rows = [row for row in plan.rows() if row.differs]
    return {session_id(row.id, seed): settings_text(row.differs) for row in rows for seed in row.seeds}


def show(states: Iterable[SessionState], as_json: bool, settings: Mapping[str, str] | None = None) -> None:
    """Prints sessions as a table with a total, or as JSON."""
    sessions = list(states)
    if as_json:
        print(json.dumps([session.data() for session in sessions], indent=2))  # noqa: T201
        return
    if not sessions:
        echo("there are no sessions")
        return
    names = [
        "experiment",
        "session",
        "settings",
        "state",
        "frames",
        "fps",
        "return",
        "target",
        "time",
        "device",
        "note",
    ]
    on_gpu = any(session.device not in (None, "cpu") for session in sessions)
    known = settings or {}
    rows = [_cells(session, known.get(session.session, ""), with_device=on_gpu) for session in sessions]
    right = ("frames", "fps", "return", "target", "time")
    table(names, rows, right=right, drop=DROPPED, wrap="settings")
    totals = Counter(session.label for session in sessions)
    total = ", ".join(f"{number:,} {state}" for state, number in totals.items())
    echo(f"[bold]{count(len(sessions), 'session')}[/bold]: {total}")


def _state(session: SessionState) -> str:
    return session.label if session.compiling is None else f"compiling {duration(session.compiling)}"


def _speed_counts(session: SessionState) -> bool:
    """Whether the speed at the last log point is that of now, or of a whole session."""
    return session.state == "done" or (session.state == "running" and session.compiling is None)


def show_set_aside(runs: Path, as_json: bool) -> None:
    """Prints the sessions that were set aside to be trained again, and where they are."""
    found = list(set_aside_states(runs))
    if as_json:
        print(json.dumps([session.data() for session in found], indent=2))  # noqa: T201
        return
    if not found:
        echo("no session was set aside")
        return
    names = ["session", "state", "frames", "return", "code", "directory"]
    rows = [
        [one.session, one.state, amount(one.frame), _episode_return(one), one.code or "", escape(one.directory)]
        for one in found
    ]
    table(names, rows, right=("frames", "return"))
    back = "renaming its directory" if len(found) == 1 else "renaming a directory"
    echo(f"[bold]{count(len(found), 'session')} set aside[/bold]; {back} to seed-N brings the session back")


def _episode_return(session: SessionState) -> str:
    return "" if session.episode_return is None else f"{session.episode_return:.1f}"


def _cells(session: SessionState, settings: str, with_device: bool) -> list[str]:
    progress = "" if session.state in ("done", "new") else f"{amount(session.frame)}/"
    return [
        session.experiment,
        session.session,
        escape(settings),
        f"[{COLOURS[session.state]}]{_state(session)}[/]",
        progress + amount(session.length),
        "" if session.fps is None or not _speed_counts(session) else amount(session.fps),
        _episode_return(session),
        "" if session.target is None else f"{session.target:g}",
        duration(session.seconds) if session.seconds else "",
        (session.device or "") if with_device else "",
        escape(session.note),
    ]
