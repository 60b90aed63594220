"""The panels that show the learning curves of trials: one for each environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rldsl.report.gradient_steps import gradient_steps
from rldsl.report.learning_curve import Curve, JoinedCurve, join
from rldsl.report.panel import FRAMES, UPDATES, WALL_TIME, Axis, Floats, Line, Panel, colors_of
from rldsl.report.trial_curves import SeedCurves, TrialCurves
from rldsl.report.varied_settings import VariedSettings
from rldsl.report.words import count
from rldsl.spec.errors import SpecError, suggestion

Statistic = Literal["mean", "median", "seeds"]
AXES = {axis.name.replace(" ", "-"): axis for axis in (FRAMES, WALL_TIME, UPDATES)}
BAND = "lowest to highest seed"


@dataclass(frozen=True)
class View:
    """How trials are shown."""

    metric: str = "episode_return"
    axis: Axis = FRAMES
    statistic: Statistic = "mean"
    smooth: int = 1
    """Each point becomes the mean of the last this many log points."""
    top: int | None = None
    """Trials of an experiment that are shown: those with the highest last value. None: all."""

    @property
    def smoothing(self) -> str:
        return f"smoothed: mean of {self.smooth} log points" if self.smooth > 1 else ""


@dataclass(frozen=True)
class _Drawn:
    """A trial and its curves on the chosen axis."""

    trial: TrialCurves
    joined: JoinedCurve


def make_panels(trials: Sequence[TrialCurves], view: View) -> list[Panel]:
    """A panel for each environment, with a line for each trial, or for each seed."""
    drawn = [one for one in (_drawn(trial, view) for trial in with_settings(trials)) if one.joined.frame.size]
    if trials and not drawn:
        raise SpecError(_nothing(trials, view))
    environments = dict.fromkeys(one.trial.env for one in drawn)
    return [_panel(env, [one for one in _best(drawn, view.top) if one.trial.env == env], view) for env in environments]


def with_settings(trials: Sequence[TrialCurves]) -> list[TrialCurves]:
    """The trials, each with the settings in which it differs from others of the same experiment."""
    varied: dict[str, VariedSettings] = {}
    for trial in trials:
        varied.setdefault(trial.experiment, VariedSettings()).add(trial.trial, trial.spec)
    return [replace(trial, settings=varied[trial.experiment].label(trial.trial)) for trial in trials]


def smoothed(values: Floats, window: int) -> Floats:
    """The mean of the last `window` values at each point; of fewer at the beginning."""
    if window <= 1 or not values.size:
        return values
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, values.size + 1)
    starts = np.maximum(0, ends - window)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def _drawn(trial: TrialCurves, view: View) -> _Drawn:
    curves = [_curve(seed, trial, view) for seed in trial.seeds]
    if trial.joined is None or any(curve.frame.size for curve in curves):
        return _Drawn(trial, join(curves))
    if view != replace(View(), top=view.top):
        raise SpecError(f"{trial.experiment} keeps only the mean of its episode_return by frames, not the seeds")
    return _Drawn(trial, trial.joined)


def _curve(seed: SeedCurves, trial: TrialCurves, view: View) -> Curve:
    columns = seed.columns
    values = columns.get(view.metric, ())
    if not len(values):
        return Curve.of([], [])
    curve = Curve.of(_x_values(columns, trial, view.axis), values)
    finite = np.isfinite(curve.frame)
    x, y = curve.frame[finite], smoothed(curve.value[finite], view.smooth)
    last = np.append(np.diff(x) > 0, True)[: x.size]  # of the log points between two updates
    return Curve(x[last], y[last])


def _x_values(columns: Mapping[str, Sequence[Any]], trial: TrialCurves, axis: Axis) -> Sequence[Any] | Floats:
    if axis == FRAMES:
        return columns["frame"]
    if axis == WALL_TIME:
        return columns.get("seconds") or [None] * len(columns["frame"])
    steps = gradient_steps(trial.parsed(), np.asarray(columns["frame"], dtype=np.float64))
    if steps is None:
        raise SpecError(f"the number of updates of {trial.experiment} does not follow from its settings")
    return steps


def _best(drawn: Sequence[_Drawn], top: int | None) -> list[_Drawn]:
    """The best trials of each experiment by the last value of their curves, in their own order."""
    if top is None:
        return list(drawn)
    by_experiment: dict[str, list[_Drawn]] = {}
    for one in drawn:
        by_experiment.setdefault(one.trial.experiment, []).append(one)
    kept = [
        one.trial.trial
        for group in by_experiment.values()
        for one in sorted(group, key=lambda one: -one.joined.mean[-1])[:top]
    ]
    return [one for one in drawn if one.trial.trial in kept]


def _panel(env: str, drawn: Sequence[_Drawn], view: View) -> Panel:
    labels = _labels([one.trial for one in drawn])
    targets = {one.trial.target for one in drawn}
    target = targets.pop() if len(targets) == 1 and view.metric in ("episode_return", "episode_return_ma") else None
    colors = colors_of(labels)
    lines = [line for one, label in zip(drawn, labels, strict=True) for line in _lines(one, label, colors[label], view)]
    if view.statistic == "seeds" and len(drawn) == 1:
        names = [f"{lines[0].label} seed {seed.seed}" for seed in drawn[0].trial.seeds if _has(seed, view)]
        lines = [
            replace(line, label=name, color=index) for index, (line, name) in enumerate(zip(lines, names, strict=True))
        ]
    band = BAND if any(line.low is not None for line in lines) else ""
    return Panel(env, lines, target, view.metric, view.axis, band, view.smoothing, _note(drawn, view))


def _has(seed: SeedCurves, view: View) -> bool:
    return bool(np.isfinite(np.asarray(seed.columns.get(view.metric, ()), dtype=np.float64)).any())


def _lines(one: _Drawn, label: str, color: int, view: View) -> list[Line]:
    joined = one.joined
    if view.statistic == "seeds":
        known = [np.isfinite(values) for values in joined.seeds]
        pairs = zip(joined.seeds, known, strict=True)
        return [Line(label, joined.frame[finite], values[finite], color=color) for values, finite in pairs]
    line = Line.joined(label, joined, color)
    return [replace(line, y=np.nanmedian(joined.seeds, axis=0)) if view.statistic == "median" else line]


def _labels(trials: Sequence[TrialCurves]) -> list[str]:
    """The names of experiments, without a beginning that all share, and the settings of each trial."""
    families = {trial.experiment.partition("/")[0] for trial in trials if "/" in trial.experiment}
    short = len(families) == 1 and all("/" in trial.experiment for trial in trials)
    names = [trial.experiment.partition("/")[2] if short else trial.experiment for trial in trials]
    labels = [f"{name} {trial.settings}".strip() for name, trial in zip(names, trials, strict=True)]
    return [
        f"{label} {trial.trial}" if labels.count(label) > 1 else label
        for label, trial in zip(labels, trials, strict=True)
    ]


def _note(drawn: Sequence[_Drawn], view: View) -> str:
    numbers = sorted({int(one.joined.n.max()) for one in drawn})
    if view.statistic == "seeds":
        return "each seed"
    if numbers == [1]:
        return "one seed"
    return f"{view.statistic} of {'-'.join(map(str, numbers[:: max(1, len(numbers) - 1)]))} seeds"


def _nothing(trials: Sequence[TrialCurves], view: View) -> str:
    columns = list(dict.fromkeys(name for trial in trials for seed in trial.seeds for name in seed.columns))
    if columns and view.metric not in columns:
        return f"no session logs the metric {view.metric}; {suggestion(view.metric, columns)}"
    return f"{count(len(trials), 'trial')} found, but none has a value of {view.metric} yet"
