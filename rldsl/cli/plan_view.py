"""The command `plan`: the sessions of a plan as a table or as JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from rldsl.cli.search_plan import Repeated, show_search
from rldsl.cli.tables import echo, escape, fits, table
from rldsl.launch.backend import backend_for
from rldsl.launch.devices import device_warnings
from rldsl.launch.fill import fillings, job_shapes, packs_of
from rldsl.launch.initial import missing_initial
from rldsl.launch.jobs import LEAST
from rldsl.launch.search_state import SearchProgress
from rldsl.plan.after import Awaited, awaited, obstacle
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.extend import Extension, NotExtended
from rldsl.plan.plan import Part, Plan, Row
from rldsl.report.status import STYLES
from rldsl.report.words import amount, count, duration, setting_name, settings_text, value
from rldsl.spec.experiment import Trial
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
    waits = awaited(plan, existing) if walk else {}
    for part in plan.parts:
        _show_part(part, searches.get(part.name), waits.get(part.name))
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
    _show_extensions(shown, existing)
    _show_total(plan, tally, searches, len(shown), walk)
    warnings = device_warnings(tally.unfinished.values(), plan.launcher) if tally.unfinished else ()
    missing = missing_initial(shown[:LISTED], existing.runs, waits)
    for warning in (*warnings, *(f"{name}: {reason}" for name, reason in missing.items())):
        echo(f"[yellow]warning: {escape(warning)}[/yellow]")
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
    shapes = job_shapes(packs_of(missing, launcher), launcher)
    echo(f"[bold]on {launcher.kind}[/bold]: {count(shapes.total(), 'job')}")
    for resources in dict.fromkeys(shape.asked for shape in shapes) or [LEAST]:
        for line in backend_for(launcher, existing.runs).offers(resources):
            echo(f"  {escape(line)}")
    for line in fillings(shapes, launcher):
        echo(f"  [yellow]{escape(line)}[/yellow]" if line.startswith("warning") else f"  {escape(line)}")


def _show_part(part: Part, progress: SearchProgress | None, waits: Awaited | None) -> None:
    search = {None: "", "exhaustive": " of a grid"}.get(part.search, f" by {part.search}")
    target = f", target {part.target.score:g}" if part.target else ""
    size = f"{count(part.trials, 'trial')}{search} x {count(part.seeds, 'seed')} x {amount(part.frames)} frames"
    echo(f"[bold]{part.name}[/bold]  {size}{target}")
    if part.work:
        echo(f"  [dim]{part.work}[/dim]")
    if waits is not None:
        echo(f"  {waits.words}")
        if reason := obstacle((planned for planned in waits.needs if planned.state == "failed"), ()):
            echo(f"  [yellow]{reason}[/yellow]")
    show_search(part, progress)
    for one in part.overrides:
        now, was = escape(value(one.now)), escape(value(one.was))
        echo(f"  [yellow]{one.path} = {now}[/yellow]  instead of {was}  [dim]({escape(one.source)})[/dim]")


def _show_sessions(shown: list[PlannedSession], tally: _Tally) -> None:
    """A column for each setting that differs; on a narrow terminal one column for all of them."""
    if not shown:
        return
    paths = list(dict.fromkeys(path for one in shown for path in one.row.differs))
    names = ["experiment", "session", *map(setting_name, paths), "seed", "state", "frames", "time left"]
    rows = [_cells(one, [_setting(one, path) for path in paths], tally) for one in shown]
    if paths and not fits(names, rows):
        names = ["experiment", "session", "settings", "seed", "state", "frames", "time left"]
        rows = [_cells(one, [escape(settings_text(one.row.differs))], tally) for one in shown]
    drop = ("time left", "seed", "experiment")
    table(names, rows, right=("frames", "time left"), drop=drop, wrap="settings")


def _setting(one: PlannedSession, path: str) -> str:
    return escape(value(one.row.differs[path])) if path in one.row.differs else ""


def _cells(one: PlannedSession, settings: list[str], tally: _Tally) -> list[str]:
    state = one.state
    extension = tally.existing.extension(one)
    frame = extension.frame if isinstance(extension, Extension) else one.on_disk.frame
    progress = f"{amount(frame)}/" if frame and state != "done" else ""
    left = "" if state == "done" or tally.ended(one) else duration(tally.existing.seconds_left(one))
    shown_state = f"[{STYLES[state]}]{tally.label(one)}[/]"
    frames = progress + amount(one.on_disk.length)
    return [one.row.experiment, one.id, *settings, str(one.seed), shown_state, frames, left]


def _show_extensions(shown: list[PlannedSession], existing: Existing) -> None:
    """Says which sessions continue shorter ones, and why others do not; once for each experiment and reason."""
    said: set[str] = set()
    for planned in shown:
        found = existing.extension(planned)
        if isinstance(found, Extension):
            line = f"{planned.row.experiment}: continues the sessions of {amount(found.frames)} frames"
        elif found is not None:
            known = f"{found.source.id} has {amount(found.frames)} frames and is not continued"
            hint = f'.init_from("{found.source.id}") starts from its weights'
            line = f"{planned.row.experiment}: {known}: {found.reason}; {hint}"
        else:
            continue
        if (key := line.replace(found.source.id, "")) not in said:
            said.add(key)
            echo(f"[dim]{escape(line)}[/dim]")


def _show_total(plan: Plan, tally: _Tally, searches: Mapping[str, SearchProgress], shown: int, walked: bool) -> None:
    unchosen = {part.name: searches[part.name].unchosen * part.seeds for part in plan.parts if part.name in searches}
    listable = tally.listed if walked else plan.sessions - sum(unchosen.values())
    if listable > shown:
        echo(f"[dim]... {count(listable - shown, 'more session')} (--all lists them)[/dim]")
    for part in plan.parts:
        tally.add_unchosen(unchosen.get(part.name, 0), part.frames)
    shared = tally.listed - len(tally.seen)
    trials = len(tally.trials) + sum(searches[part.name].unchosen for part in plan.parts if part.name in unchosen)
    sessions = (len(tally.seen) if walked else listable) + sum(unchosen.values())
    total = f"{count(trials if walked else plan.trials, 'trial')}, {count(sessions, 'session')}"
    if shared:
        echo(f"[dim]{count(shared, 'session')} listed more than once: each counts once[/dim]")
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
        self.seen: set[str] = set()
        self.trials: set[str] = set()
        self.listed = 0
        """Sessions in the table: those that experiments share are in it several times."""
        self.unfinished: dict[tuple[str, str], Trial] = {}
        """A trial of each experiment and device that has sessions to train."""

    def label(self, planned: PlannedSession) -> str:
        """The state of a session; `extend` if it will continue a shorter one."""
        extends = isinstance(self.existing.extension(planned), Extension)
        return "extend" if extends else planned.on_disk.label

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
        """Counts a session once, however many experiments share it."""
        self.listed += 1
        self.trials.add(planned.row.id)
        if planned.id in self.seen:
            return
        self.seen.add(planned.id)
        self.states[self.label(planned)] += 1
        if self.ended(planned):
            return
        self.lacks = self.lacks or planned.lacks
        if planned.state not in ("done", "running"):
            self.unfinished.setdefault((planned.row.experiment, planned.row.trial.compute.device), planned.row.trial)
        self.frames += self.existing.frames_left(planned)
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
            "other_code": one.on_disk.other_code,
            "frame": one.on_disk.frame,
            **_extends_json(existing.extension(one)),
            "frames": one.frames,
            "seconds_left": existing.seconds_left(one),
        }


def _extends_json(extension: Extension | NotExtended | None) -> dict[str, Any]:
    if not isinstance(extension, Extension):
        return {"extends": None}
    return {"extends": {"session": extension.source.id, "frame": extension.frame}}
