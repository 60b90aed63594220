"""How sessions stand: the plain-text door to the same facts that the monitor shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from rldsl.cli.load import launcher_files, launcher_of
from rldsl.cli.tables import echo, escape, table
from rldsl.launch.queues import QueuedJob, Queues
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import STYLES, About, Status, status_of
from rldsl.report.words import amount, count, duration
from rldsl.spec.launcher import Launcher
from rldsl.store.errors import StoreError
from rldsl.store.metrics import last_row
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir, StateReport

COLOURS = {**STYLES, "queued": "magenta"}
MOST_EXPLAINED = 5
LOG_LINES = 4


def of_plan(plan: Plan, existing: Existing) -> Iterator[Status]:
    """The sessions of a plan, the ones that have not been started included."""
    seen: set[str] = set()
    for row in plan.rows():
        for one in existing.planned(row):
            if one.id not in seen:
                seen.add(one.id)
                target = row.target.score if row.target else None
                directory = SessionDir(existing.runs / one.directory)
                about = About(row.experiment, one.id, one.seed, one.frames, target)
                yield _status(about, directory, one.report)


def of_runs(runs: Path) -> Iterator[Status]:
    """Every session of a run directory."""
    for directory in Runs(runs).sessions():
        try:
            about = directory.read_session()
        except StoreError:
            about = {}
        yield _status(About.from_record(about, directory), directory, directory.report())


def _status(about: About, directory: SessionDir, report: StateReport) -> Status:
    last = last_row(directory.metrics) if report.state != "new" else None
    return status_of(about, directory, report, last or {})


def known_queues(runs: Path) -> Queues:
    """The queues, with launchers of the project's own where a job was submitted by one."""
    queues = Queues(runs)
    if any(ticket.place not in Launcher.kinds for ticket in queues.tickets.values()):
        for file in launcher_files():
            launcher_of(file)
    return queues


def show_with_queues(plan: Plan, runs: Path, as_json: bool) -> None:
    """The sessions of a plan, joined with what the queues say of those that are not done, and why jobs ended."""
    queues = known_queues(runs)
    queues.fetch(queues.of_trials({row.id for row in plan.rows()}))
    sessions = list(of_plan(plan, Existing(runs)))
    held = queues.held(one.session for one in sessions if one.state not in ("done", "failed"))
    show([_joined(one, held.get(one.session)) for one in sessions], as_json)
    if as_json:
        return
    for note in dict.fromkeys(queues.notes):
        echo(f"[yellow]{escape(note)}[/yellow]")
    ended = [one for one in sessions if one.session in held and held[one.session].state.state == "failed"]
    for one in ended[:MOST_EXPLAINED]:
        _explain(one, held[one.session], queues)


def _joined(one: Status, held: QueuedJob | None) -> Status:
    if held is None:
        return one
    job, state = f"{held.ticket.place} job {held.ticket.job_id}", held.state
    if state.state == "pending" and one.state != "running":
        return replace(one, state="queued", reason=f"{job}{f': {state.reason}' if state.reason else ''}")
    if state.state == "running":
        begins = "" if one.state == "running" else "starts "
        return replace(one, state="running", reason=f"{begins}on {state.where}, {job}" if state.where else job)
    if one.state == "running":
        return replace(one, reason=job)
    why = state.reason or {"done": "ended", "unknown": "not known to its queue"}.get(state.state, state.state)
    return replace(one, reason="; ".join(filter(None, [f"{job}: {why}", one.reason])))


def _explain(one: Status, held: QueuedJob, queues: Queues) -> None:
    log = SessionDir(Path(one.directory)).log
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    echo(f"[bold]{one.session}[/bold]: [red]{escape(held.state.reason)}[/red]; the last lines of its log:")
    for line in (lines or queues.last_words(held.ticket))[-LOG_LINES:]:
        echo(f"  [dim]{escape(line)}[/dim]")


def show(statuses: Iterable[Status], as_json: bool) -> None:
    """Prints them as a table with a total, or as JSON."""
    sessions = list(statuses)
    if as_json:
        print(json.dumps([asdict(one) for one in sessions], indent=2))  # noqa: T201
        return
    if not sessions:
        echo("there are no sessions")
        return
    names = ["experiment", "session", "state", "frames", "fps", "return", "target", "time", "note"]
    table(names, [_cells(one) for one in sessions], right=("frames", "fps", "return", "target", "time"))
    states = ", ".join(f"{number:,} {state}" for state, number in Counter(one.state for one in sessions).items())
    echo(f"[bold]{count(len(sessions), 'session')}[/bold]: {states}")


def _cells(one: Status) -> list[str]:
    return [
        one.experiment,
        one.session,
        f"[{COLOURS[one.state]}]{one.state}[/]",
        amount(one.frames) if one.state in ("done", "new") else f"{amount(one.frame)}/{amount(one.frames)}",
        "" if one.fps is None else amount(one.fps),
        "" if one.mean_return is None else f"{one.mean_return:.1f}",
        "" if one.target is None else f"{one.target:g}",
        duration(one.seconds) if one.seconds else "",
        escape(one.note),
    ]
