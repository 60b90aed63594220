"""Statistics over the scores of several runs (Agarwal et al. 2021, arXiv:2108.13264)."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A confidence interval; (nan, nan) if there are too few runs."""

    low: float
    high: float


UNKNOWN = Interval(np.nan, np.nan)


def mean(scores: Floats) -> Floats:
    """Mean over the last axis: `[..., n] -> [...]`."""
    return np.asarray(scores.mean(-1))


def interquartile_mean(scores: ArrayLike) -> Floats:
    """Mean without the lowest and highest floor(n / 4) runs, over the last axis: `[..., n] -> [...]`.
    nan without runs or if any run is nan: a failed run must not be trimmed away."""
    runs = np.sort(np.asarray(scores, dtype=np.float64), axis=-1)  # nan sorts last
    n = runs.shape[-1]
    if n == 0:
        return np.full(runs.shape[:-1], np.nan)
    middle = runs[..., n // 4 : n - n // 4].mean(-1)
    return np.where(np.isnan(runs[..., -1]), np.nan, middle)


def bootstrap_interval(
    strata: Sequence[ArrayLike],
    rng: np.random.Generator,
    statistic: Callable[[Floats], Floats] = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Interval:
    """Stratified percentile bootstrap of a statistic of all runs.

    A stratum holds the runs of one task, `[n]`; n may differ between strata and is at least 2. `statistic`
    maps `[resamples, all runs]` to `[resamples]`.
    """
    groups = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if not groups or min(group.size for group in groups) < 2:
        return UNKNOWN
    samples = [group[rng.integers(group.size, size=(resamples, group.size))] for group in groups]
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(np.concatenate(samples, axis=1)), (tail, 1 - tail))
    return Interval(float(low), float(high))


def mean_interval(scores: ArrayLike, confidence: float = 0.95) -> Interval:
    """mean ± t * s / sqrt(n), t the quantile of Student's distribution with n - 1 degrees of freedom (Student 1908)."""
    runs = np.asarray(scores, dtype=np.float64)
    if runs.size < 2:
        return UNKNOWN
    from scipy.special import stdtrit  # imported here because it is slow

    t = float(stdtrit(runs.size - 1, (1 + confidence) / 2))
    margin = t * runs.std(ddof=1) / math.sqrt(runs.size)
    return Interval(float(runs.mean() - margin), float(runs.mean() + margin))
