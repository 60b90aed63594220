"""The objective of a search: one number for a trial at a rung, from the learning curves of its seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from rldsl.spec.search import Statistic
from rldsl.store.metrics import read_metrics

LAST = 100
"""Log points that the value of a session is the mean of, as for `episode_return_ma`."""


class SessionValue(NamedTuple):
    """A session at a rung."""

    value: float
    """nan if no episode has ended before the rung."""
    seconds: float
    """Training time up to the rung."""


def session_value(metrics: Path, frames: int | None, last: int = LAST) -> SessionValue:
    """The mean `episode_return` of the last log points up to `frames`, or of the whole session without it.

    Log points behind the rung do not count: a session that has trained further has the same value.
    """
    table = read_metrics(metrics)
    points = zip(table.get("frame", ()), table.get("seconds", ()), table.get("episode_return", ()), strict=True)
    until = [point for point in points if frames is None or (point[0] or 0) <= frames]
    returns = [float(value) for _, _, value in until if value is not None][-last:]
    return SessionValue(fmean(returns) if returns else math.nan, float(until[-1][1] or 0.0) if until else 0.0)


@dataclass(frozen=True)
class Objective:
    """How a trial is judged by the values of its seeds."""

    over_seeds: Statistic = "mean"
    maximize: bool = True
    last: int = LAST

    def value(self, values: Iterable[float]) -> float:
        """The value of a trial; nan if one of its seeds has none. `min` is the worst seed, whatever is optimized."""
        seeds = sorted(values)
        if not seeds or any(math.isnan(value) for value in seeds):
            return math.nan
        if self.over_seeds == "min":
            return seeds[0] if self.maximize else seeds[-1]
        if self.over_seeds == "median":
            return median(seeds)
        return iqm(seeds) if self.over_seeds == "iqm" else fmean(seeds)

    def score(self, values: Iterable[float]) -> float:
        """The value as a number of which more is better; nan is the worst."""
        value = self.value(values)
        return -math.inf if math.isnan(value) else value if self.maximize else -value


def iqm(values: Collection[float]) -> float:
    """The interquartile mean: without floor(n / 4) values at each end, as in rliable and scipy's `trim_mean`."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])
