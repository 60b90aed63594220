"""How sessions stand: the plain-text door to the same facts that the monitor shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from rldsl.cli.tables import echo, escape, table
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.status import STYLES, About, Status, status_of
from rldsl.report.words import amount, count, duration
from rldsl.store.errors import StoreError
from rldsl.store.metrics import last_row
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir, StateReport


def of_plan(plan: Plan, existing: Existing) -> Iterator[Status]:
    """The sessions of a plan, the ones that have not been started included."""
    seen: set[str] = set()
    for row in plan.rows():
        for one in existing.standings(row):
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
        f"[{STYLES[one.state]}]{one.state}[/]",
        amount(one.frames) if one.state in ("done", "new") else f"{amount(one.frame)}/{amount(one.frames)}",
        "" if one.fps is None else amount(one.fps),
        "" if one.mean_return is None else f"{one.mean_return:.1f}",
        "" if one.target is None else f"{one.target:g}",
        duration(one.seconds) if one.seconds else "",
        escape(one.note),
    ]
