"""Statistics over the scores of several runs, and intervals whose coverage was simulated (docs/statistics.md).

The scores of one task are `[n]`, those of several tasks a list with one array per task, whose n may differ. Statistics
of tasks broadcast over leading axes, so that they are also statistics of bootstrap resamples, `[resamples, n]`.
Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", arXiv:2108.13264.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Tasks = Sequence[ArrayLike]

CONFIDENCE = 0.95
FEWEST = 3
"""Runs below which no interval is given."""


class Interval(NamedTuple):
    """A confidence interval; (nan, nan) if it is not known."""

    low: float
    high: float

    @property
    def known(self) -> bool:
        return not math.isnan(self.low)


UNKNOWN = Interval(math.nan, math.nan)


def mean(tasks: Tasks) -> Floats:
    """Mean over tasks of the mean over runs; of one task `[scores]`, the mean of its runs."""
    return np.asarray(np.mean(_task_means(tasks), axis=0))


def median(tasks: Tasks) -> Floats:
    """Median over tasks of the mean over runs."""
    return np.asarray(np.median(_task_means(tasks), axis=0))


def iqm(tasks: Tasks) -> Floats:
    """Interquartile mean: mean of the runs of all tasks without the lowest and highest floor(runs / 4).
    nan without runs or if any run is nan: a failed run must not be trimmed away."""
    runs = np.sort(np.concatenate([np.asarray(task, dtype=np.float64) for task in tasks], axis=-1))  # nan sorts last
    n = runs.shape[-1]
    if n == 0:
        return np.full(runs.shape[:-1], np.nan)
    middle = runs[..., n // 4 : n - n // 4].mean(-1)
    return np.where(np.isnan(runs[..., -1]), np.nan, middle)


def performance_profile(tasks: Tasks, thresholds: ArrayLike) -> Floats:
    """F(tau) = mean over tasks of the fraction of runs with a score > tau: `[..., number of thresholds]`."""
    tau = np.asarray(thresholds, dtype=np.float64)
    above = [(np.asarray(task, dtype=np.float64)[..., None] > tau).mean(-2) for task in tasks]
    return np.asarray(np.mean(above, axis=0))


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> float:
    """P(B > A) + P(B = A) / 2 for one task: the Mann-Whitney U statistic over n_a * n_b. nan if a score is nan."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if not first.size or not second.size:
        return math.nan
    difference = second[:, None] - first[None, :]
    return float(np.where(np.isnan(difference), np.nan, (np.sign(difference) + 1) / 2).mean())


def bootstrap(
    tasks: Tasks, statistic: Callable[[Tasks], Floats], rng: np.random.Generator, resamples: int = 2000
) -> Floats:
    """The statistic of stratified resamples: each task's runs are drawn anew, with replacement. `[resamples, ...]`."""
    groups = [np.asarray(task, dtype=np.float64) for task in tasks]
    return statistic([group[rng.integers(group.size, size=(resamples, group.size))] for group in groups])


def bootstrap_interval(
    tasks: Tasks,
    statistic: Callable[[Tasks], Floats] = iqm,
    rng: np.random.Generator | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = 2000,
) -> Interval:
    """Stratified percentile bootstrap interval of a statistic of several tasks, as in Agarwal et al. 2021.

    For one task with fewer than ten runs it covers too rarely: use `interval_of_mean`.
    """
    if not tasks or min(np.size(np.asarray(task)) for task in tasks) < FEWEST:
        return UNKNOWN
    values = bootstrap(tasks, statistic, rng or np.random.default_rng(0), resamples)
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, (tail, 1 - tail))
    return Interval(float(low), float(high))


def profile_band(tasks: Tasks, thresholds: ArrayLike, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """Lower and upper end of the bootstrap interval of the performance profile at each threshold."""
    values = bootstrap(tasks, partial(performance_profile, thresholds=thresholds), np.random.default_rng(0))
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, (tail, 1 - tail), axis=0)
    return low, high


def interval_of_mean(scores: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """mean ± t * s / sqrt(n), t the quantile of Student's distribution with n - 1 degrees of freedom (Student 1908).

    Not known for fewer than three runs, if a score is nan, or if all scores are equal: then s says nothing about how
    much they can differ.
    """
    runs = np.asarray(scores, dtype=np.float64)
    if runs.size < FEWEST or np.isnan(runs).any() or runs.min() == runs.max():
        return UNKNOWN
    return _around(float(runs.mean()), runs.std(ddof=1) / math.sqrt(runs.size), runs.size - 1, confidence)


def difference_interval(a: ArrayLike, b: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Welch's interval of mean(b) - mean(a), for independent runs with unequal variances (Welch 1947).

    Not known for fewer than three runs of either, if a score is nan, or if neither varies.
    """
    groups = [np.asarray(scores, dtype=np.float64) for scores in (a, b)]
    if min(group.size for group in groups) < FEWEST or any(np.isnan(group).any() for group in groups):
        return UNKNOWN
    if all(group.min() == group.max() for group in groups):
        return UNKNOWN
    squares = [float(group.var(ddof=1)) / group.size for group in groups]
    degrees = sum(squares) ** 2 / sum(
        square**2 / (group.size - 1) for square, group in zip(squares, groups, strict=True)
    )
    difference = float(groups[1].mean() - groups[0].mean())
    return _around(difference, math.sqrt(sum(squares)), degrees, confidence)


def improvement_interval(a: ArrayLike, b: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Newcombe's interval of the probability of improvement (method 5 of Newcombe 2006, doi:10.1002/sim.2324).

    All p with |p - p_observed| <= z * sqrt(V(p)), with the variance of Hanley and McNeil (1982),
    V(p) = p (1 - p) (1 + N ((1 - p) / (2 - p) + p / (1 + p))) / (n_a n_b) and N = (n_a + n_b) / 2 - 1.
    Not known for fewer than three runs of either, or if a score is nan.
    """
    n_a, n_b = np.size(np.asarray(a)), np.size(np.asarray(b))
    observed = probability_of_improvement(a, b)
    if min(n_a, n_b) < FEWEST or math.isnan(observed):
        return UNKNOWN
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    pairs = (n_a + n_b) / 2 - 1

    def contains(p: float) -> bool:
        variance = p * (1 - p) * (1 + pairs * ((1 - p) / (2 - p) + p / (1 + p))) / (n_a * n_b)
        return (p - observed) ** 2 <= z**2 * variance

    return Interval(_end(contains, observed, 0.0), _end(contains, observed, 1.0))


def _end(contains: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where an interval ends between a point inside it and one that is not, by bisection."""
    for _ in range(50):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if contains(middle) else (inside, middle)
    return inside


def _around(center: float, standard_error: float, degrees: float, confidence: float) -> Interval:
    from scipy.special import stdtrit  # imported here because it is slow

    margin = float(stdtrit(degrees, (1 + confidence) / 2)) * standard_error
    return Interval(center - margin, center + margin)


def _task_means(tasks: Tasks) -> list[Floats]:
    return [np.asarray(task, dtype=np.float64).mean(-1) for task in tasks]
