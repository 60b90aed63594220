"""Staged search: a wide search, a narrow one on ranges around its best trials, and a validation on fresh seeds.

The narrow stage is an ordinary search. Its ranges are a function of the journal of the wide stage, so it can be resumed
like any other: the same journal gives the same search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rldsl.search.history import History
from rldsl.search.leaderboard import best_trials
from rldsl.search.schedule import schedule_of
from rldsl.spec.budget import Seeds
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.spec.search import Axis, Choice, Dimension, Interval, IntUniform, Listed, RandomSearch, Sobol
from rldsl.spec.stages import Narrow


def narrow_experiment(experiment: Experiment, history: History) -> Experiment:
    """The narrow stage of a search whose wide stage is finished."""
    search = experiment.search
    assert search is not None and search.narrow is not None
    best = best_trials(history, experiment, search.narrow.best)
    if not best:
        raise SpecError(f"{experiment.name}: no trial has a value, so there is nothing to search around")
    dimensions = [_narrowed(dimension, search.narrow, [row.point for row in best]) for dimension in search.dimensions]
    narrow = search.with_(
        dimensions=tuple(dimension for dimension in dimensions if dimension is not None),
        method=_method(search.narrow),
        narrow=None,
    )
    first = experiment.seeds.first + len(schedule_of(experiment).seeds[-1])
    seeds = Seeds(count=search.narrow.seeds, first=first)
    return experiment.with_(name=f"{experiment.name}-narrow", seeds=seeds, search=narrow)


def _method(narrow: Narrow) -> RandomSearch | Sobol:
    kind = RandomSearch if narrow.sampler == "random" else Sobol
    return kind(trials=narrow.trials, seed=narrow.seed)


def _narrowed(dimension: Dimension, narrow: Narrow, points: Sequence[Mapping[str, Any]]) -> Dimension | None:
    """The dimension with the values around those of the best points; None if none of them has it."""
    having = [point for point in points if dimension.active(dict(point))]
    if not having:
        return None
    if isinstance(dimension.axis, Interval):
        values = [point[dimension.paths[0]] for point in having]
        return dimension.with_(axis=_around(dimension.axis, values, narrow.margin))
    assert isinstance(dimension.axis, Listed)
    rows = [[point[path] for path in dimension.paths] for point in having]
    kept = [value for value in dimension.axis.values if _row(dimension, value) in rows]
    ordered = isinstance(dimension.axis, Choice) and dimension.axis.ordered
    return dimension.with_(axis=Choice(tuple(kept), ordered=ordered))


def _row(dimension: Dimension, value: Any) -> list[Any]:
    return list(dimension.assignments(value).values())


def _around(axis: Interval, values: Sequence[float], share: float) -> Axis:
    """The range of the values, wider by a share of the original range on both sides, clipped to it; on its scale."""
    scaled = [axis.scaled(value) for value in values]
    margin = share * (axis.scaled(axis.high) - axis.scaled(axis.low))
    low, high = min(scaled) - margin, max(scaled) + margin
    if isinstance(axis, IntUniform):
        return axis.with_(low=max(axis.low, math.floor(low)), high=min(axis.high, math.ceil(high)))
    return axis.with_(
        low=axis.low if low <= axis.scaled(axis.low) else axis.clipped(axis.unscaled(low)),
        high=axis.high if high >= axis.scaled(axis.high) else axis.clipped(axis.unscaled(high)),
    )
