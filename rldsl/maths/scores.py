"""Scores of a learning curve, of one session or of the sessions of one trial.

A curve is the mean episode return at each log point. Leading nans, before the first finished episode, are skipped; a
later nan makes the score nan. Without enough points a score is nan.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

WINDOW = 100


def moving_average(curve: ArrayLike, window: int = WINDOW) -> Floats:
    """Mean of the last `window` points at each point, or of all points so far if they are fewer."""
    points = np.asarray(curve, dtype=np.float64)
    known = _known(points)
    result = np.full_like(points, np.nan)
    if known.size:
        padded = np.concatenate((np.zeros(window - 1), known))
        sums = np.lib.stride_tricks.sliding_window_view(padded, window).sum(-1)
        result[points.size - known.size :] = sums / np.minimum(np.arange(1, known.size + 1), window)
    return result


def total_reward_ma(curve: ArrayLike) -> float:
    """The score of the reference tables: the mean of the last 100 log points."""
    return _mean(_known(curve)[-WINDOW:])


def local_strengths(curve: ArrayLike, random_return: float) -> Floats:
    """R_i - R_rand at each log point: the improvement over a random policy. The scores below are functions of it."""
    return np.asarray(curve, dtype=np.float64) - random_return


def strength(strengths: ArrayLike) -> float:
    """mean(strength_i)."""
    return _mean(_known(strengths))


def max_strength(strengths: ArrayLike) -> float:
    """max(strength_i)."""
    known = _known(strengths)
    return float(known.max()) if known.size else np.nan


def final_strength(strengths: ArrayLike) -> float:
    """The last strength_i."""
    known = _known(strengths)
    return float(known[-1]) if known.size else np.nan


def sample_efficiency(strengths: ArrayLike, frames: ArrayLike) -> float:
    """sum(strength_i / frame_i) / sum(strength_i)."""
    return _efficiency(strengths, frames)


def training_efficiency(strengths: ArrayLike, optimizer_steps: ArrayLike) -> float:
    """sum(strength_i / step_i) / sum(strength_i), over gradient steps."""
    return _efficiency(strengths, optimizer_steps)


def stability(strengths: ArrayLike) -> float:
    """1 - |sum of decreases between log points / sum of strength_i without the last|: 1 if the curve never falls."""
    known = _known(strengths)
    if known.size < 2:
        return np.nan
    return 1 - abs(_ratio(np.minimum(np.diff(known), 0).sum(), known[:-1].sum()))


def consistency(strengths: Sequence[ArrayLike]) -> float:
    """1 - 2 * sum_i(std_i) / sum_i(mean_i), std (unbiased) and mean over the seeds at log point i: 1 if seeds agree.

    Curves are cut to the length of the shortest and start at the first point that all of them have. At least two seeds.
    """
    curves = [np.asarray(curve, dtype=np.float64) for curve in strengths]
    if len(curves) < 2:
        return np.nan
    table = np.stack([curve[: min(map(len, curves))] for curve in curves])
    first = max(table.shape[1] - _known(row).size for row in table)
    table = table[:, first:]
    return 1 - 2 * _ratio(table.std(axis=0, ddof=1).sum(), table.mean(axis=0).sum())


def _efficiency(strengths: ArrayLike, times: ArrayLike) -> float:
    """A point at time 0 is left out of the numerator, as in SLM-Lab."""
    known = _known(strengths)
    t = np.asarray(times, dtype=np.float64)
    if t.size != np.size(np.asarray(strengths)):
        raise ValueError(f"{np.size(np.asarray(strengths))} strengths but {t.size} times")
    t = t[t.size - known.size :]
    begun = t > 0
    return _ratio((known[begun] / t[begun]).sum(), known.sum())


def _known(curve: ArrayLike) -> Floats:
    """The curve without leading nans."""
    points = np.asarray(curve, dtype=np.float64)
    some = ~np.isnan(points)
    return points[some.argmax() :] if some.any() else points[:0]


def _mean(x: Floats) -> float:
    return float(x.mean()) if x.size else np.nan


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator != 0 else np.nan
