"""The part of `plan` that describes searches: axes, frames, rungs and advice."""

from __future__ import annotations

from collections import Counter

from rldsl.cli.tables import echo, escape
from rldsl.launch.search_state import SearchProgress
from rldsl.plan.plan import Part, Plan, Row
from rldsl.report.words import amount, count
from rldsl.store.plan_parts import RungCost, SearchCost, StageCost

ADVISED = (3, 4)
"""Trials per dimension that a search should have."""


def show_search(part: Part, progress: SearchProgress | None) -> None:
    """Prints what a search varies, what it costs and what it will do."""
    cost = part.cost
    if cost is None:
        return
    names = ", ".join(path.removeprefix("agent.") for path in cost.axes)
    echo(f"  {count(len(cost.axes), 'dimension')}: {escape(names)}")
    if progress is not None and progress.finished:
        echo("  finished: all its trials have ended, `report` shows them")
        return
    if part.adaptive:
        left = part.trials if progress is None else progress.unchosen
        echo(f"  each trial is chosen from the results so far: {count(left, 'trial')} cannot be listed yet")
    if cost.total is not None:
        echo(f"  {_frames(cost.total, cost)}")
    for number, rung in enumerate(cost.rungs):
        echo(f"  {_rung(number, rung)}")
    for stage in cost.stages:
        echo(f"  {_stage(stage)}")
    if cost.stages and cost.expected is not None:
        later = sum(stage.frames for stage in cost.stages)
        total = f"about {amount(_rounded(cost.expected) + later)}" if cost.rungs else amount(cost.expected + later)
        echo(f"  all stages: {total} frames")
    if advice := _advice(cost):
        echo(f"  [yellow]{advice}[/yellow]")


def _frames(total: int, cost: SearchCost) -> str:
    if not cost.rungs:
        return f"{amount(total)} frames"
    expected = amount(_rounded(cost.expected or 0))
    return f"{amount(total)} frames if every trial trains to the end, about {expected} expected"


def _rounded(expected: int) -> float:
    """An expectation with the digits that it deserves."""
    return float(f"{expected:.2g}")


def _rung(number: int, rung: RungCost) -> str:
    about = "" if number == 0 else "about "
    trials = count(round(rung.trials), "trial")
    return f"rung {number}: {about}{trials} to {amount(rung.frames)} frames, {count(rung.seeds, 'seed')} each"


def _stage(stage: StageCost) -> str:
    frames = f"{count(stage.seeds, 'seed')} each, {amount(stage.frames)} frames"
    if stage.name == "validation":
        best = count(stage.trials - 1, "best trial")
        return f"then validation: {best} and the current settings, {frames}"
    return f"then {stage.name}: {count(stage.trials, 'trial')} around the best, {frames}"


def _advice(cost: SearchCost) -> str | None:
    low, high = (number * len(cost.axes) for number in ADVISED)
    if cost.samples >= low:
        return None
    return f"few trials: 3-4 per dimension are advised, {low} to {high} here"


class Repeated:
    """Counts the samples of each search that repeat an earlier one, which trains nothing new."""

    def __init__(self, plan: Plan) -> None:
        self.trials = {part.name: part.trials for part in plan.parts if part.cost is not None}
        self.seen: set[tuple[str, str]] = set()
        self.repeats: Counter[str] = Counter()

    def add(self, row: Row) -> None:
        """Counts a trial of the plan."""
        if row.experiment in self.trials:
            self.repeats[row.experiment] += (row.experiment, row.id) in self.seen
            self.seen.add((row.experiment, row.id))

    def show(self) -> None:
        """Prints a line for each search with repeated samples."""
        for name, number in self.repeats.items():
            if number:
                echo(f"[dim]{name}: {number} of {count(self.trials[name], 'trial')} repeat earlier ones[/dim]")
