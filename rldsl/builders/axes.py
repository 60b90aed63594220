"""The axes of a search, as experiment files write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rldsl.spec.base import Kind
from rldsl.spec.errors import SpecError, line_of_user
from rldsl.spec.search import (
    Axis,
    Choice,
    Condition,
    Grid,
    IntUniform,
    Listed,
    LogitUniform,
    LogUniform,
    Uniform,
)

uniform = Uniform
"""`uniform(low, high)`: a number sampled uniformly."""
log_uniform = LogUniform
"""`log_uniform(low, high)`: a positive number sampled uniformly in its logarithm."""
logit_uniform = LogitUniform
"""`logit_uniform(low, high)`: a number between 0 and 1 sampled uniformly in its logit log(x / (1 - x))."""
int_uniform = IntUniform
"""`int_uniform(low, high)`: an integer sampled uniformly, both bounds included."""


def grid(*values: Any) -> Grid:
    """Every one of these values is used."""
    return Grid(values)


def choice(*values: Any, ordered: bool = False) -> Choice:
    """One of these values is sampled, with equal probability. `ordered`: neighbouring values are similar."""
    return Choice(values, ordered=ordered)


@dataclass(frozen=True)
class Zipped:
    """Axes that vary together: the first values of all, then the second values of all, ..."""

    names: tuple[str, ...]
    axis: Listed


def zipped(paths: dict[str, Listed] | None = None, /, **axes: Listed) -> Zipped:
    """Zips axes of the same kind and length, as in `.search(zipped(lr=grid(1e-3, 1e-4), clip=grid(0.1, 0.2)))`."""
    named = {**(paths or {}), **axes}
    kinds = {type(axis) for axis in named.values()}
    if kinds not in ({Grid}, {Choice}):
        raise SpecError("zipped takes axes of one kind, all grid or all choice", line_of_user())
    lengths = {name: len(axis.values) for name, axis in named.items()}
    if len(set(lengths.values())) != 1:
        given = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise SpecError(f"zipped takes axes of one length: {given}", line_of_user())
    rows = tuple(list(row) for row in zip(*(axis.values for axis in named.values()), strict=True))
    ordered = all(isinstance(axis, Choice) and axis.ordered for axis in named.values())
    return Zipped(tuple(named), Grid(rows) if kinds == {Grid} else Choice(rows, ordered=ordered))


Axes: TypeAlias = Zipped | Mapping[str, Axis]
"""Axes that `.search` takes without a name: zipped ones, or a dictionary of paths."""


@dataclass(frozen=True)
class When:
    """Axes that exist only in trials in which another axis has one of its values."""

    condition: Condition
    groups: tuple[Axes, ...]
    where: str | None


def when(path: str, value: Any, /, *groups: Axes, **axes: Axis) -> When:
    """Axes of trials in which the axis `path` has this value, or a value of this kind.

    `.search(when("agent", "sac", tau=log_uniform(1e-3, 1e-1)), agent=choice(SAC(), PPO()))`
    """
    where = line_of_user()
    if isinstance(value, type) and issubclass(value, Kind):
        value = value.model_fields["kind"].default
    if not groups and not axes:
        raise SpecError("when needs an axis, such as tau=log_uniform(1e-3, 1e-1)", where)
    return When(Condition(path, value), (*groups, axes) if axes else groups, where)
