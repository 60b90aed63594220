"""What a search has found: the best settings, what early stopping saved, which axes matter, score against time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rldsl.report.search_importance import Importance, estimate_importance, least_trials
from rldsl.report.words import value as shown
from rldsl.search.history import History
from rldsl.search.leaderboard import RankedTrial, leaderboard
from rldsl.search.schedule import Schedule, schedule_of
from rldsl.spec.experiment import Experiment
from rldsl.spec.search import Dimension, Interval, Listed


@dataclass(frozen=True)
class AxisColumn:
    """An axis of a search, and where each trial lies on it."""

    label: str
    positions: Mapping[int, float]
    """By trial: the value on the scale of the axis, or its index in a list. Trials without the axis are left out."""
    ticks: Mapping[float, str]
    """Positions along the axis and the values there."""


@dataclass(frozen=True)
class RungSummary:
    """What happened at a rung."""

    rung: int
    frames: int
    seeds: int
    reached: int
    """Trials with a result there."""
    promoted: int
    best: float | None
    median: float | None

    def data(self) -> dict[str, Any]:
        return self.__dict__.copy()


@dataclass(frozen=True)
class SearchReport:
    """The results of a search so far."""

    experiment: Experiment
    rows: Sequence[RankedTrial]
    curves: Mapping[int, Mapping[int, float]]
    """By trial: its value at each rung that it has reached."""
    columns: Sequence[AxisColumn]
    rungs: Sequence[RungSummary]
    frames: int
    """Frames of all trials up to the rungs that they have reached; those of failed trials up to the rung before."""
    frames_unstopped: int
    """Frames if all trials that were started had trained to the end."""
    importance: Importance | None
    """Of the axes for the value of a trial; with rungs, for its rank on the leaderboard."""
    front: Sequence[RankedTrial]
    """The Pareto front: trials of which no other is both better and faster, fastest first."""

    @property
    def best(self) -> RankedTrial | None:
        return next((row for row in self.rows if row.value is not None and row.state != "failed"), None)

    @property
    def least_trials(self) -> int:
        """How many trials the importance needs."""
        return least_trials(len(self.columns))

    @property
    def saved(self) -> float:
        """The share of frames that early stopping saved."""
        return 1 - self.frames / self.frames_unstopped if self.frames_unstopped else 0.0

    def data(self) -> dict[str, Any]:
        """The report as JSON."""
        search = self.experiment.search
        assert search is not None
        return {
            "experiment": self.experiment.name,
            "method": search.method.data(),
            "trials": [row.data() for row in self.rows],
            "rungs": [rung.data() for rung in self.rungs],
            "frames": self.frames,
            "frames_without_early_stopping": self.frames_unstopped,
            "importance": self.importance and dict(self.importance.axes),
            "importance_explains": self.importance and self.importance.explained,
            "pareto_front": [row.number for row in self.front],
        }


def search_report(experiment: Experiment, history: History) -> SearchReport:
    """The report of a search, finished or not."""
    schedule = schedule_of(experiment)
    curves = {
        trial.number: {rung: schedule.objective.value(seeds.values()) for rung, seeds in sorted(trial.values.items())}
        for trial in history.trials
    }
    rows, columns = leaderboard(history, experiment), axis_columns(experiment, history)
    started = [trial for trial in history.trials if trial.started is not None]
    return SearchReport(
        experiment=experiment,
        rows=rows,
        curves=curves,
        columns=columns,
        rungs=[_rung(rung, history, curves, schedule) for rung in range(schedule.rungs)],
        frames=sum(_frames(schedule, trial.reached) for trial in started),
        frames_unstopped=len(started) * _frames(schedule, schedule.rungs - 1),
        importance=_importance(columns, rows, schedule.rungs),
        front=pareto_front(rows, schedule.objective.maximize),
    )


def pareto_front(rows: Sequence[RankedTrial], maximize: bool = True) -> list[RankedTrial]:
    """The trials of which no other has at least as good a value in less time, fastest first."""
    front: list[RankedTrial] = []
    known = [row for row in rows if row.value is not None and row.state != "failed"]
    sign = 1 if maximize else -1
    for row in sorted(known, key=lambda row: (row.seconds, -sign * (row.value or 0.0))):
        if not front or sign * (row.value or 0.0) > sign * (front[-1].value or 0.0):
            front.append(row)
    return front


def _frames(schedule: Schedule, rung: int | None) -> int:
    """Frames of a trial up to a rung: all seeds of the rung train from the beginning."""
    return 0 if rung is None else schedule.frames[rung] * len(schedule.seeds[rung])


def _rung(rung: int, history: History, curves: Mapping[int, Mapping[int, float]], schedule: Schedule) -> RungSummary:
    values = [curve[rung] for curve in curves.values() if rung in curve and not math.isnan(curve[rung])]
    return RungSummary(
        rung=rung,
        frames=schedule.frames[rung],
        seeds=len(schedule.seeds[rung]),
        reached=sum(rung in curve for curve in curves.values()),
        promoted=sum((trial.started or 0) > rung for trial in history.trials),
        best=(max if schedule.objective.maximize else min)(values, default=None),
        median=median(values) if values else None,
    )


def axis_columns(experiment: Experiment, history: History) -> list[AxisColumn]:
    """The axes of a search with the positions of its trials."""
    assert experiment.search is not None
    return [_column(dimension, history) for dimension in experiment.search.dimensions]


def _column(dimension: Dimension, history: History) -> AxisColumn:
    positions = {}
    for trial in history.trials:
        if dimension.active(dict(trial.point)) and all(path in trial.point for path in dimension.paths):
            positions[trial.number] = _position(dimension, trial.point)
    return AxisColumn(dimension_label(dimension), positions, _ticks(dimension))


def dimension_label(dimension: Dimension) -> str:
    """`gamma`; `lr, clip` for zipped paths; `tau (sac)` for an axis of one agent."""
    label = ", ".join(path.removeprefix("agent.") for path in dimension.paths)
    return label if dimension.when is None else f"{label} ({shown(dimension.when.value)})"


def _position(dimension: Dimension, point: Mapping[str, Any]) -> float:
    axis, first = dimension.axis, point[dimension.paths[0]]
    if isinstance(axis, Interval):
        return axis.scaled(first)
    assert isinstance(axis, Listed)
    row = first if len(dimension.paths) == 1 else [point[path] for path in dimension.paths]
    return float(axis.values.index(row))


def _ticks(dimension: Dimension, count: int = 5) -> dict[float, str]:
    axis = dimension.axis
    if isinstance(axis, Interval):
        low, high = axis.scaled(axis.low), axis.scaled(axis.high)
        positions = [low + (high - low) * step / (count - 1) for step in range(count)]
        return {position: f"{axis.unscaled(position):.3g}" for position in positions}
    assert isinstance(axis, Listed)
    return {float(index): _listed(one) for index, one in enumerate(axis.values)}


def _listed(one: Any) -> str:
    return ", ".join(map(shown, one)) if isinstance(one, list) else shown(one)


def _importance(columns: Sequence[AxisColumn], rows: Sequence[RankedTrial], rungs: int) -> Importance | None:
    """With rungs, ranks are predicted: values at different rungs are not comparable, and the last has only the best."""
    known = [row for row in rows if row.value is not None and row.state != "failed"]
    positions = {column.label: [column.positions.get(row.number, math.nan) for row in known] for column in columns}
    targets = [float(rank) for rank, _ in enumerate(known)] if rungs > 1 else [row.value or 0.0 for row in known]
    return estimate_importance(positions, targets)
