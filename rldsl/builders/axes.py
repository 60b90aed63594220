"""The axes of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rldsl.spec.errors import SpecError, line_of_user
from rldsl.spec.search import Choice, Grid, IntUniform, Listed, LogUniform, Uniform

uniform = Uniform
"""`uniform(low, high)`: a number sampled uniformly."""
log_uniform = LogUniform
"""`log_uniform(low, high)`: a positive number sampled uniformly in its logarithm."""
int_uniform = IntUniform
"""`int_uniform(low, high)`: an integer sampled uniformly, both bounds included."""


def grid(*values: Any) -> Grid:
    """Every one of these values is used."""
    return Grid(values)


def choice(*values: Any) -> Choice:
    """One of these values is sampled, with equal probability."""
    return Choice(values)


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
    return Zipped(tuple(named), Grid(rows) if kinds == {Grid} else Choice(rows))
