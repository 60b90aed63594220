"""Learning curves of several seeds, joined by frame."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class Curve(NamedTuple):
    """The learning curve of one seed: increasing frames and a finite value at each. Empty if no episode ended."""

    frame: Floats
    value: Floats

    @classmethod
    def of(cls, frames: ArrayLike, values: ArrayLike) -> Curve:
        """A curve without the points that have no value: None or nan, as before the first episode has ended."""
        frame, value = np.asarray(frames, dtype=np.float64), np.asarray(values, dtype=np.float64)
        finite = np.isfinite(value)
        return cls(frame[finite], value[finite])


class JoinedCurve(NamedTuple):
    """The curves of several seeds on common frames; all arrays are `[points]` but `seeds`."""

    frame: Floats
    mean: Floats
    """Mean over the seeds that have a value at the frame."""
    low: Floats
    """The lowest of them."""
    high: Floats
    """The highest of them."""
    n: NDArray[np.int64]
    """How many they are."""
    seeds: Floats
    """`[seeds, points]`: the value of each seed, nan before its first and after its last point."""


def join(curves: Sequence[Curve], min_seeds: int | None = None, max_points: int | None = None) -> JoinedCurve:
    """Joins the curves of seeds by frame.

    Seeds may log at different frames: between its first and its last point, a curve is interpolated linearly; it is
    never extended. Frames are kept where at least `min_seeds` seeds have a value: by default all of them, so that the
    mean does not jump where a seed starts or ends. Curves without points are left out. Of more than `max_points`
    frames, as many are kept at regular distances, the first and the last included.
    """
    curves = [curve for curve in curves if curve.frame.size]
    frames = reduce(np.union1d, [curve.frame for curve in curves], np.empty(0))
    seeds = np.array([_at(frames, curve) for curve in curves]).reshape(len(curves), frames.size)
    n = (~np.isnan(seeds)).sum(axis=0)
    kept = np.flatnonzero(n >= (len(curves) if min_seeds is None else max(1, min_seeds)))
    if max_points is not None and kept.size > max_points:
        kept = kept[np.unique(np.linspace(0, kept.size - 1, max_points).astype(int))]
    frames, seeds, n = frames[kept], seeds[:, kept], n[kept]
    if not frames.size:
        return JoinedCurve(frames, frames, frames, frames, n, seeds)
    return JoinedCurve(frames, np.nanmean(seeds, 0), np.nanmin(seeds, 0), np.nanmax(seeds, 0), n, seeds)


def _at(frames: Floats, curve: Curve) -> Floats:
    return np.interp(frames, curve.frame, curve.value, left=np.nan, right=np.nan)
