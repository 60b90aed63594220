"""Search axes and methods."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from annotated_types import Gt
from pydantic import BeforeValidator, Field, JsonValue, Strict, model_validator

from rldsl.spec.base import Count, Kind, Natural, Positive, Real, Spec, Unique, Whole, unique, whole


def plain(value: Any) -> Any:
    """The values of an axis as plain data: nested specs become dictionaries."""
    if isinstance(value, Spec):
        return value.data()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


class Axis(Kind, frozen=True):
    """The values that a search may assign to a field."""

    def ends(self) -> tuple[Any, ...]:
        """Values to validate against the field: if they are valid, so are all values of the axis."""
        raise NotImplementedError


class Listed(Axis, frozen=True):
    """An axis that lists its values."""

    values: Annotated[tuple[JsonValue, ...], BeforeValidator(plain)] = Field(
        kw_only=False, min_length=1, description="The values; for zipped paths, a list of lists"
    )

    def ends(self) -> tuple[Any, ...]:
        return self.values


class Grid(Listed, frozen=True):
    """Every value is used."""

    kind: Literal["grid"] = "grid"


class Choice(Listed, frozen=True):
    """One of the values is sampled, with equal probability."""

    kind: Literal["choice"] = "choice"


class Interval(Axis, frozen=True):
    """Numbers between two bounds."""

    low: Real = Field(kw_only=False, description="Lower bound")
    high: Real = Field(kw_only=False, description="Upper bound")

    @model_validator(mode="after")
    def _low_below_high(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"{type(self).__name__}.low should be less than high, got {self.low:g} and {self.high:g}")
        return self

    def ends(self) -> tuple[Any, ...]:
        """Both bounds and a non-integer between them, which an integer field rejects."""
        return (self.low, self.high, self.low + (self.high - self.low) / math.e)


class Uniform(Interval, frozen=True):
    """Uniform between the bounds."""

    kind: Literal["uniform"] = "uniform"


class LogUniform(Interval, frozen=True):
    """Uniform in the logarithm."""

    kind: Literal["log_uniform"] = "log_uniform"
    low: Positive = Field(kw_only=False, description="Lower bound")
    high: Positive = Field(kw_only=False, description="Upper bound")


class IntUniform(Interval, frozen=True):
    """Uniform over integers, both bounds included."""

    kind: Literal["int_uniform"] = "int_uniform"
    low: Whole = Field(kw_only=False, description="Lower bound")
    high: Whole = Field(kw_only=False, description="Upper bound")

    def ends(self) -> tuple[Any, ...]:
        return (self.low, self.high)


class Dimension(Spec, frozen=True):
    """An axis and the path of the field that it varies; zipped axes have several paths."""

    paths: Annotated[tuple[str, ...], Unique] = Field(min_length=1, description="Field paths, such as agent.gamma")
    axis: Axis = Field(description="Values of the field")

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

    def assignments(self, value: Any) -> dict[str, Any]:
        """Path and value of each field that this dimension sets at one of its axis's values."""
        return {self.paths[0]: value} if len(self.paths) == 1 else dict(zip(self.paths, value, strict=True))


class Method(Kind, frozen=True):
    """How trials are generated from the axes."""

    @property
    def sampled(self) -> bool:
        """Whether trials are sampled, at random or by score. Such sessions never enter a benchmark table."""
        return True


class Exhaustive(Method, frozen=True):
    """Every point of the grid; the first axis varies slowest."""

    kind: Literal["exhaustive"] = "exhaustive"

    @property
    def sampled(self) -> bool:
        return False


class RandomSearch(Method, frozen=True):
    """Independent random samples; each is combined with every value of the grid axes."""

    kind: Literal["random"] = "random"
    trials: Count = Field(kw_only=False, default=16, description="Number of sampled trials")
    seed: Natural = Field(default=0, description="Seed of the sampler")


class Asha(Method, frozen=True):
    """Asynchronous successive halving of random trials: Li et al. (2020)."""

    kind: Literal["asha"] = "asha"
    trials: Count = Field(kw_only=False, default=16, description="Number of sampled trials")
    seed: Natural = Field(default=0, description="Seed of the sampler")
    grace: Count = Field(description="Frames of every trial before the first comparison")
    eta: Annotated[int, Strict(), Gt(1), BeforeValidator(whole)] = Field(
        default=3, description="Reduction factor: one in eta trials is promoted at each rung"
    )


class Nevergrad(Method, frozen=True):
    """Sequential optimization with the Nevergrad library."""

    kind: Literal["nevergrad"] = "nevergrad"
    trials: Count = Field(kw_only=False, default=16, description="Number of trials")
    seed: Natural = Field(default=0, description="Seed of the optimizer")
    optimizer: str = Field(default="NGOpt", description="Name of the Nevergrad optimizer")


class Search(Spec, frozen=True):
    """The axes of an experiment and the method that generates its trials."""

    dimensions: tuple[Dimension, ...] = Field(min_length=1, description="Axes")
    method: Method = Field(default=Exhaustive(), description="Search method")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        paths = list(self.paths())
        if repeated := next((path for path in paths if paths.count(path) > 1), None):
            raise ValueError(f"{repeated} is an axis twice")
        drawn = [dimension for dimension in self.dimensions if not isinstance(dimension.axis, Grid)]
        if drawn and not self.method.sampled:
            raise ValueError(
                f"{drawn[0].paths[0]} is sampled: choose a method with .random(...), .asha(...) or .nevergrad(...)"
            )
        if self.method.sampled and not drawn:
            raise ValueError(f"{self.method.kind} has nothing to sample: every axis is a grid")
        return self

    def paths(self) -> Iterator[str]:
        """The paths of all axes."""
        for dimension in self.dimensions:
            yield from dimension.paths
