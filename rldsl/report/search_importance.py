"""How much each axis of a search matters, estimated with a random forest.

A forest (Breiman 2001) predicts the value or the rank of a trial from its settings. The importance of an axis is the
increase of the squared prediction error on held-out trials when the values of that axis are permuted among them, as a
share of the variance of what is predicted. It is a rough guide: trials are few and noisy, and axes that act together
share their importance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FOLDS = 5
TREES = 100
PERMUTATIONS = 10
PER_AXIS = 4
"""Trials per axis below which nothing is estimated, and never fewer than `LEAST`."""
LEAST = 10


@dataclass(frozen=True)
class Importance:
    """The importance of each axis, most important first, and how far the forest can be trusted."""

    axes: Mapping[str, float]
    explained: float
    """Share of the variance of held-out values that the forest explains; at most 0 if it found nothing."""
    trials: int


def least_trials(axes: int) -> int:
    """How many trials with a value an estimate for this many axes needs."""
    return max(LEAST, PER_AXIS * axes)


def estimate_importance(columns: Mapping[str, Sequence[float]], values: Sequence[float]) -> Importance | None:
    """The importance of the axes, given their positions on each trial (nan where a conditional axis is inactive).

    None if the trials are too few, or if all have the same value.
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import KFold

    y = np.asarray(values, dtype=np.float64)
    if y.size < least_trials(len(columns)) or not y.std() > 0:
        return None
    x = np.stack([_filled(column) for column in columns.values()], axis=1)
    increase, error = np.zeros(len(columns)), 0.0
    for train, held_out in KFold(FOLDS, shuffle=True, random_state=0).split(x):
        forest = RandomForestRegressor(TREES, random_state=0).fit(x[train], y[train])
        error += float(((forest.predict(x[held_out]) - y[held_out]) ** 2).sum())
        permuted = permutation_importance(
            forest,
            x[held_out],
            y[held_out],
            scoring="neg_mean_squared_error",
            n_repeats=PERMUTATIONS,
            random_state=0,
        )
        increase += permuted.importances_mean * held_out.size
    variance = float(((y - y.mean()) ** 2).sum())
    shares = {name: max(0.0, float(share)) for name, share in zip(columns, increase / variance, strict=True)}
    ordered = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return Importance(ordered, 1 - error / variance, y.size)


def _filled(column: Sequence[float]) -> Floats:
    """The column with its median in the gaps. Gaps would tell what the parent of a conditional axis is."""
    x = np.asarray(column, dtype=np.float64)
    known = x[~np.isnan(x)]
    return np.where(np.isnan(x), np.median(known) if known.size else 0.0, x)
