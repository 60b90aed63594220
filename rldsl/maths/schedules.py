"""Schedules: a hyperparameter as a function of training progress, which is clamped to [0, 1]."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import singledispatch

from rldsl.spec import schedule as spec


@singledispatch
def value_at(rate: object, frame: int, frames: int) -> float:
    """The value of a number or schedule at `frame` of `frames`. A schedule of your own registers here."""
    raise TypeError(f"{type(rate).__name__} has no value_at: register one with rldsl.maths.schedules.value_at")


@value_at.register(float)
def _(rate: float, frame: int, frames: int) -> float:
    return rate


@value_at.register
def _(rate: spec.Linear, frame: int, frames: int) -> float:
    return linear(rate.start, rate.end, _progress(rate, frame, frames))


@value_at.register
def _(rate: spec.Cosine, frame: int, frames: int) -> float:
    return cosine(rate.start, rate.end, _progress(rate, frame, frames))


@value_at.register
def _(rate: spec.Exponential, frame: int, frames: int) -> float:
    return exponential(rate.start, rate.end, _progress(rate, frame, frames))


@value_at.register
def _(rate: spec.Steps, frame: int, frames: int) -> float:
    return steps([boundary / frames for boundary in rate.boundaries], rate.values, frame / frames)


def _progress(rate: spec.Decay, frame: int, frames: int) -> float:
    """How much of the change is done: it takes the whole budget, a fraction of it, or a number of frames."""
    if rate.over is None:
        return frame / frames
    return frame / (rate.over if rate.over >= 1 else rate.over * frames)


def linear(start: float, end: float, progress: float) -> float:
    """start + (end - start) * p."""
    p = _clamp(progress)
    return (1 - p) * start + p * end


def cosine(start: float, end: float, progress: float) -> float:
    """end + (start - end) * (1 + cos(pi * p)) / 2 (Loshchilov & Hutter 2017, arXiv:1608.03983, eq. 5)."""
    return linear(end, start, (1 + math.cos(math.pi * _clamp(progress))) / 2)


def exponential(start: float, end: float, progress: float) -> float:
    """start^(1 - p) * end^p: geometric interpolation between two positive values."""
    if start <= 0 or end <= 0:
        raise ValueError(f"an exponential schedule runs between positive values, not {start} and {end}")
    p = _clamp(progress)
    return math.pow(start, 1 - p) * math.pow(end, p)


def steps(boundaries: Sequence[float], values: Sequence[float], progress: float) -> float:
    """values[k], k the number of boundaries reached. There is one more value than boundaries."""
    if len(values) != len(boundaries) + 1:
        raise ValueError(f"{len(boundaries)} boundaries need {len(boundaries) + 1} values, not {len(values)}")
    if list(boundaries) != sorted(boundaries):
        raise ValueError(f"boundaries must ascend: {list(boundaries)}")
    return values[bisect_right(boundaries, _clamp(progress))]


def _clamp(progress: float) -> float:
    return min(max(progress, 0.0), 1.0)
