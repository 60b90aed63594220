"""The command `plan`: the sessions of a plan as a table or as JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from rldsl.cli.search_plan import Repeated, show_search
from rldsl.cli.tables import echo, escape, table
from rldsl.launch.backend import backend_for
from rldsl.launch.jobs import LEAST, Resources
from rldsl.launch.search_state import SearchProgress
from rldsl.launch.submit import packs_of
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Part, Plan, Row
from rldsl.report.status import STYLES
from rldsl.report.words import amount, count, duration, value
from rldsl.spec.launcher import Local
from rldsl.store.plan_file import write_plan

LISTED = 40
"""Sessions that are listed without `--all`."""
WALKED = 200_000
"""Trials up to which all sessions are looked up; of a larger plan, only the first trials are made."""


def show_plan(
    plan: Plan, existing: Existing, searches: Mapping[str, SearchProgress], everything: bool = False
) -> str | None:
    """Prints experiments, sessions and totals; returns what this machine lacks to run them.

    `searches` is the progress of those experiments of the plan that are searches.
    """
    walk = everything or plan.trials <= WALKED
    listed = None if everything else LISTED
    for part in plan.parts:
        _show_part(part, searches.get(part.name))
    tally = _Tally(existing, finished_names(searches))
    shown: list[PlannedSession] = []
    repeated = Repeated(plan)
    for row in plan.rows() if walk else islice(plan.rows(), LISTED):
        repeated.add(row)
        for planned in existing.planned(row):
            tally.add(planned)
            if listed is None or len(shown) < listed:
                shown.append(planned)
    _show_sessions(shown, tally)
    repeated.show()
    _show_total(plan, tally, searches, len(shown), walk)
    return tally.lacks


def finished_names(searches: Mapping[str, SearchProgress]) -> frozenset[str]:
    """The searches that have nothing left to train."""
    return frozenset(name for name, progress in searches.items() if progress.finished)


def show_backend(plan: Plan, existing: Existing, finished: Collection[str], chosen: bool) -> None:
    """Prints the number of jobs and what the backend offers; for this machine only if it was `chosen` with --on."""
    launcher = plan.launcher
    if not chosen and isinstance(launcher, Local):
        return
    sessions = {planned.id: planned for row in islice(plan.rows(), WALKED) for planned in existing.planned(row)}
    missing = [
        planned
        for planned in sessions.values()
        if planned.state not in ("done", "running") and planned.row.experiment not in finished
    ]
    jobs = Counter(Resources.of(pack[0].row.trial) for pack in packs_of(missing, launcher))
    echo(f"[bold]on {launcher.kind}[/bold]: {count(jobs.total(), 'job')}")
    for resources in jobs or [LEAST]:
        for line in backend_for(launcher, existing.runs).offers(resources):
            echo(f"  {escape(line)}")


def _show_part(part: Part, progress: SearchProgress | None) -> None:
    search = {None: "", "exhaustive": " of a grid"}.get(part.search, f" by {part.search}")
    target = f", target {part.target.score:g}" if part.target else ""
    size = f"{count(part.trials, 'trial')}{search} x {count(part.seeds, 'seed')} x {amount(part.frames)} frames"
    echo(f"[bold]{part.name}[/bold]  {size}{target}")
    if part.work:
        echo(f"  [dim]{part.work}[/dim]")
    show_search(part, progress)
    for one in part.overrides:
        now, was = escape(value(one.now)), escape(value(one.was))
        echo(f"  [yellow]{one.path} = {now}[/yellow]  instead of {was}  [dim]({escape(one.source)})[/dim]")


def _show_sessions(shown: list[PlannedSession], tally: _Tally) -> None:
    if not shown:
        return
    paths = list(dict.fromkeys(path for one in shown for path in one.row.differs))
    names = [path.removeprefix("agent.") for path in paths]
    rows = [_cells(one, paths, tally) for one in shown]
    columns = ["experiment", "session", *names, "seed", "state", "frames", "time left"]
    table(columns, rows, right=("frames", "time left"))


def _cells(one: PlannedSession, paths: list[str], tally: _Tally) -> list[str]:
    state = one.state
    differs = [escape(value(one.row.differs[path])) if path in one.row.differs else "" for path in paths]
    progress = f"{amount(one.on_disk.frame)}/" if state in ("resume", "paused", "running", "failed") else ""
    left = "" if state == "done" or tally.ended(one) else duration(tally.existing.seconds_left(one))
    shown_state = f"[{STYLES[state]}]{state}[/]"
    return [one.row.experiment, one.id, *differs, str(one.seed), shown_state, progress + amount(one.frames), left]


def _show_total(plan: Plan, tally: _Tally, searches: Mapping[str, SearchProgress], shown: int, walked: bool) -> None:
    unchosen = {part.name: searches[part.name].unchosen * part.seeds for part in plan.parts if part.name in searches}
    listable = tally.states.total() if walked else plan.sessions - sum(unchosen.values())
    if listable > shown:
        echo(f"[dim]... {count(listable - shown, 'more session')} (--all lists them)[/dim]")
    for part in plan.parts:
        tally.add_unchosen(unchosen.get(part.name, 0), part.frames)
    total = f"{count(plan.trials, 'trial')}, {count(listable + sum(unchosen.values()), 'session')}"
    if not walked:
        echo(f"[bold]{total}[/bold], too many to look up their states")
        return
    states = ", ".join(f"{number:,} {state}" for state, number in tally.states.items())
    work = f", about {duration(tally.seconds)} of work left" if tally.seconds is not None and tally.frames else ""
    rungs = any(part.cost and part.cost.rungs for part in plan.parts if part.name not in tally.finished)
    most = "at most " if rungs else ""
    echo(f"[bold]{total}[/bold]" + (f": {states}; {most}{amount(tally.frames)} frames to go{work}" if states else ""))


class _Tally:
    """Totals over sessions: states, frames and time that are left."""

    def __init__(self, existing: Existing, finished: Collection[str] = ()) -> None:
        self.existing, self.finished = existing, finished
        self.states: Counter[str] = Counter()
        self.frames = 0
        self.seconds: float | None = 0.0
        self.lacks: str | None = None

    def ended(self, planned: PlannedSession) -> bool:
        """Whether a session belongs to a finished search, which leaves it as it is."""
        return planned.row.experiment in self.finished

    def add_unchosen(self, sessions: int, frames: int) -> None:
        """Adds sessions of trials that an adaptive search is still to choose; how long they take is not known."""
        if sessions:
            self.states["new"] += sessions
            self.frames += sessions * frames
            self.seconds = None

    def add(self, planned: PlannedSession) -> None:
        self.states[planned.state] += 1
        if self.ended(planned):
            return
        self.lacks = self.lacks or planned.lacks
        self.frames += planned.frames_left
        left = self.existing.seconds_left(planned)
        self.seconds = None if left is None or self.seconds is None else self.seconds + left


def print_json(plan: Plan, existing: Existing) -> str | None:
    """Prints the plan with full specs and the state of each session; returns what this machine lacks to run it."""
    tally = _Tally(existing)
    write_plan(sys.stdout, plan.header(), (_row_json(row, tally) for row in plan.rows()))
    return tally.lacks


def _row_json(row: Row, tally: _Tally) -> dict[str, Any]:
    return {**row.data(), "sessions": list(_sessions_json(row, tally))}


def _sessions_json(row: Row, tally: _Tally) -> Iterator[dict[str, Any]]:
    existing = tally.existing
    for one in existing.planned(row):
        tally.add(one)
        yield {
            "id": one.id,
            "seed": one.seed,
            "directory": one.directory,
            "state": one.state,
            "frame": one.on_disk.frame,
            "frames": one.frames,
            "seconds_left": existing.seconds_left(one),
        }
