"""Statistics over runs: what a handful of seeds allows one to say (Agarwal et al. 2021, arXiv:2108.13264)."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A confidence interval; nan, nan where the runs are too few for one."""

    low: float
    high: float


UNKNOWN = Interval(np.nan, np.nan)


def mean(scores: Floats) -> Floats:
    """Mean over the last axis: `[..., n] -> [...]`."""
    return np.asarray(scores.mean(-1))


def interquartile_mean(scores: ArrayLike) -> Floats:
    """Mean without the lowest and the highest floor(n / 4) runs, over the last axis: `[..., n] -> [...]`.
    nan without runs, and where any run is nan: a run that failed must not be trimmed away."""
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
    """Percentile interval of a statistic of all runs, by resampling each stratum's runs with replacement.

    A stratum holds the runs of one task, `[n]`; strata may differ in n, and each needs at least two runs. `statistic`
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
    margin = _student_quantile(confidence, runs.size - 1) * runs.std(ddof=1) / math.sqrt(runs.size)
    return Interval(float(runs.mean() - margin), float(runs.mean() + margin))


def _student_quantile(confidence: float, freedom: int) -> float:
    """The t with P(|T| <= t) = confidence, by bisection on the angle atan(t / sqrt(freedom))."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _student_mass(angle, freedom) < confidence else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _student_mass(angle: float, freedom: int) -> float:
    """P(|T| <= sqrt(freedom) * tan(angle)) (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4)."""
    sin, cos = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cos, 0.0) if odd else (1.0, 0.0)
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cos * cos * k / (k + 1)
    return 2 / math.pi * (angle + sin * total) if odd else sin * total
