"""The search of an experiment: its dimensions, its method and its objective."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from rldsl.spec.axes import (
    Axis,
    Choice,
    Grid,
    Interval,
    IntUniform,
    Listed,
    LogitUniform,
    LogUniform,
    Uniform,
    plain,
    shown,
)
from rldsl.spec.base import Count, Flag, NoHash, Spec, Unique, unique
from rldsl.spec.methods import (
    EXAMPLES,
    Asha,
    Exhaustive,
    GridSearch,
    Method,
    Nevergrad,
    RandomSearch,
    Sampling,
    Sobol,
)
from rldsl.spec.stages import Narrow

__all__ = [
    "EXAMPLES",
    "Asha",
    "Axis",
    "Choice",
    "Condition",
    "Dimension",
    "Exhaustive",
    "Grid",
    "GridSearch",
    "IntUniform",
    "Interval",
    "Listed",
    "LogUniform",
    "LogitUniform",
    "Method",
    "Nevergrad",
    "Point",
    "RandomSearch",
    "Sampling",
    "Search",
    "Sobol",
    "Statistic",
    "Uniform",
    "plain",
    "point_of",
    "shown",
]

Point: TypeAlias = dict[str, Any]
"""The path and value of every field that a search sets in a trial."""
Statistic: TypeAlias = Literal["mean", "median", "iqm", "min"]
"""How the values of a trial's seeds become the value of the trial."""


class Condition(Spec, frozen=True):
    """A value of another axis, or the kind of that value: the condition holds in trials that have it."""

    path: str = Field(kw_only=False, description="Path of the other axis, such as agent")
    value: Annotated[JsonValue, BeforeValidator(plain)] = Field(
        kw_only=False, description="Its value, or the kind of its value, such as sac"
    )

    def matches(self, value: Any) -> bool:
        """Whether this is the value, or of the kind, that the condition names."""
        return bool(value == self.value) or (isinstance(value, Mapping) and value.get("kind") == self.value)

    def holds(self, point: Point) -> bool:
        """Whether the condition holds at a point that has the values of all axes that it depends on."""
        return self.path in point and self.matches(point[self.path])


class Dimension(Spec, frozen=True):
    """An axis and the path of the field that it varies; zipped axes have several paths."""

    paths: Annotated[tuple[str, ...], Unique] = Field(min_length=1, description="Field paths, such as agent.gamma")
    axis: Axis = Field(description="Values of the field")
    when: Condition | None = Field(default=None, description="Trials that have this dimension; None: all")

    @model_validator(mode="after")
    def _values_fit(self) -> Self:
        if isinstance(self.axis, Listed):
            unique(self.axis.values, f"the axis of {', '.join(self.paths)}")
        if len(self.paths) == 1:
            return self
        if not isinstance(self.axis, Listed):
            raise ValueError(f"only grid and choice can be zipped, got {self.axis.kind} for {', '.join(self.paths)}")
        if any(not isinstance(row, list) or len(row) != len(self.paths) for row in self.axis.values):
            raise ValueError(
                f"each value of the zipped paths {', '.join(self.paths)} should be a list of {len(self.paths)}"
            )
        return self

    @property
    def is_grid(self) -> bool:
        return isinstance(self.axis, Grid)

    def assignments(self, value: Any) -> Point:
        """Path and value of each field that this dimension sets at one of its axis's values."""
        return {self.paths[0]: value} if len(self.paths) == 1 else dict(zip(self.paths, value, strict=True))

    def active(self, point: Point) -> bool:
        """Whether a trial has this dimension, given the values of the axes that it depends on."""
        return self.when is None or self.when.holds(point)

    def values_of(self, path: str) -> list[Any]:
        """The listed values of one of its paths."""
        values = self.axis.values if isinstance(self.axis, Listed) and path in self.paths else ()
        return [self.assignments(value)[path] for value in values]


class Search(Spec, frozen=True):
    """The axes of an experiment, the method that generates its trials and the objective that ranks them."""

    dimensions: tuple[Dimension, ...] = Field(min_length=1, description="Axes")
    method: Method = Field(default=Exhaustive(), description="Search method")
    objective: Statistic = Field(default="mean", description="How the values of a trial's seeds become its value")
    maximize: Flag = Field(default=True, description="Whether higher values are better")
    max_failures: Count | None = Field(default=None, description="Failed trials that stop the search; None: never")
    narrow: Annotated[Narrow | None, NoHash] = Field(
        default=None, description="A second search around the best trials; None: there is no second stage"
    )
    validate_best: Annotated[Count | None, NoHash] = Field(
        default=None, description="Trials that are trained on the experiment's own seeds in the end; None: none"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _refuse_repeated(self.dimensions)
        for dimension in self.dimensions:
            _refuse_condition(dimension, self.dimensions)
        drawn = [dimension for dimension in self.dimensions if not dimension.is_grid]
        if drawn and isinstance(self.method, Exhaustive | GridSearch):
            raise ValueError(f"{drawn[0].paths[0]} is sampled: choose a method with {EXAMPLES}")
        if not isinstance(self.method, Exhaustive | GridSearch) and not self.sampled_dimensions:
            raise ValueError(f"{self.method.kind} has nothing to sample: every axis is a grid")
        if not self.method.sampled and (self.narrow or self.validate_best):
            raise ValueError(f"a grid has no best trials to go on with: choose a method with {EXAMPLES}")
        self._refuse_crossed_condition()
        if isinstance(self.method, Asha) and "budget.frames" in self.paths():
            raise ValueError("budget.frames cannot be an axis of asha: its rungs count frames")
        return self

    def _refuse_crossed_condition(self) -> None:
        """The number of grid points that a sample is crossed with must not depend on the sample."""
        sampled = {path for dimension in self.sampled_dimensions for path in dimension.paths}
        for dimension in self.crossed_dimensions:
            if dimension.when is not None and dimension.when.path in sampled:
                path, other = dimension.paths[0], dimension.when.path
                raise ValueError(f"{path} is a grid that depends on {other}, which is sampled: make it a choice")

    @property
    def crossed_dimensions(self) -> tuple[Dimension, ...]:
        """Axes of which every value is used."""
        return tuple(one for one in self.dimensions if one.is_grid and self.method.crosses_grids)

    @property
    def sampled_dimensions(self) -> tuple[Dimension, ...]:
        """Axes of which each trial has one value that the method chooses."""
        return tuple(one for one in self.dimensions if not (one.is_grid and self.method.crosses_grids))

    def paths(self) -> Iterator[str]:
        """The paths of all axes, each once."""
        return iter(dict.fromkeys(path for dimension in self.dimensions for path in dimension.paths))


def point_of(cells: Sequence[tuple[Dimension, Any]]) -> Point:
    """The point that has these values, without those of dimensions whose condition does not hold in it."""
    values = {id(dimension): value for dimension, value in cells}
    point: Point = {}
    for dimension in parents_first([dimension for dimension, _ in cells]):
        if dimension.active(point):
            point |= dimension.assignments(values[id(dimension)])
    return point


def parents_first(dimensions: Sequence[Dimension]) -> list[Dimension]:
    """The dimensions in their order, except that each follows the ones that its condition depends on."""
    if all(one.when is None for one in dimensions):
        return list(dimensions)
    ordered: list[Dimension] = []
    left = list(dimensions)
    while left:
        paths = {path for one in left for path in one.paths}
        ready = next((one for one in left if one.when is None or one.when.path not in paths), left[0])
        ordered.append(ready)
        left.remove(ready)
    return ordered


def _refuse_repeated(dimensions: tuple[Dimension, ...]) -> None:
    """A field has one axis, or several of which no trial has two."""
    for index, one in enumerate(dimensions):
        for other in dimensions[:index]:
            if (both := set(one.paths) & set(other.paths)) and not _exclusive(one.when, other.when, dimensions):
                raise ValueError(f"{min(both)} is an axis twice")


def _exclusive(one: Condition | None, other: Condition | None, dimensions: tuple[Dimension, ...]) -> bool:
    """Whether two conditions are about the same axis, and none of its values meets both."""
    if one is None or other is None or one.path != other.path:
        return False
    values = [value for dimension in dimensions for value in dimension.values_of(one.path)]
    return not any(one.matches(value) and other.matches(value) for value in values)


def _refuse_condition(dimension: Dimension, dimensions: tuple[Dimension, ...]) -> None:
    """A condition names a value that another listed axis can have; no axis depends on itself."""
    condition, seen = dimension.when, [dimension]
    if condition is None:
        return
    if not any(condition.path in one.paths for one in dimensions):
        raise ValueError(f"{dimension.paths[0]} depends on {condition.path}, which is not an axis")
    if not any(condition.matches(value) for one in dimensions for value in one.values_of(condition.path)):
        raise ValueError(f"{dimension.paths[0]} depends on {condition.path} = {condition.value!r}, which it never is")
    while condition is not None:
        owner = next((one for one in dimensions if condition.path in one.paths), None)
        if owner in seen:
            raise ValueError(f"{dimension.paths[0]} depends on itself")
        if owner is None:
            return
        seen.append(owner)
        condition = owner.when
