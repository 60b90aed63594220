"""Axes, and how trials are drawn from them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from annotated_types import Gt
from pydantic import BeforeValidator, Field, JsonValue, Strict, model_validator

from rldsl.spec.base import Count, Kind, Natural, Positive, Real, Spec, Unique, Whole, unique, whole


def plain(value: Any) -> Any:
    """Specs among the values of an axis are kept as their data."""
    if isinstance(value, Spec):
        return value.data()
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value


class Axis(Kind, frozen=True):
    """Values that a field may take."""

    def ends(self) -> tuple[Any, ...]:
        """Values which, if the field takes them, it takes all others too."""
        raise NotImplementedError


class Listed(Axis, frozen=True):
    """An axis that lists its values."""

    values: Annotated[tuple[JsonValue, ...], BeforeValidator(plain)] = Field(
        kw_only=False, min_length=1, description="The values; for zipped paths, a list of lists"
    )

    def ends(self) -> tuple[Any, ...]:
        return self.values


class Grid(Listed, frozen=True):
    """Every value is tried."""

    kind: Literal["grid"] = "grid"


class Choice(Listed, frozen=True):
    """Values are drawn, all as likely."""

    kind: Literal["choice"] = "choice"


class Interval(Axis, frozen=True):
    """Numbers between two ends."""

    low: Real = Field(kw_only=False, description="The lower end")
    high: Real = Field(kw_only=False, description="The upper end")

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"{type(self).__name__}.low should be less than high, got {self.low:g} and {self.high:g}")
        return self

    def ends(self) -> tuple[Any, ...]:
        """Both ends, and a number between them that is not whole: what is drawn is seldom whole either."""
        return (self.low, self.high, self.low + (self.high - self.low) / math.e)


class Uniform(Interval, frozen=True):
    """Uniform between the ends."""

    kind: Literal["uniform"] = "uniform"


class LogUniform(Interval, frozen=True):
    """Uniform in the logarithm."""

    kind: Literal["log_uniform"] = "log_uniform"
    low: Positive = Field(kw_only=False, description="The lower end")
    high: Positive = Field(kw_only=False, description="The upper end")


class IntUniform(Interval, frozen=True):
    """Whole numbers, both ends included."""

    kind: Literal["int_uniform"] = "int_uniform"
    low: Whole = Field(kw_only=False, description="The lower end")
    high: Whole = Field(kw_only=False, description="The upper end")

    def ends(self) -> tuple[Any, ...]:
        return (self.low, self.high)


class Dimension(Spec, frozen=True):
    """An axis and the path of the field that it moves; several paths move together (zipped)."""

    paths: Annotated[tuple[str, ...], Unique] = Field(min_length=1, description="Such as agent.gamma")
    axis: Axis = Field(description="The values")

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
    """How trials are drawn from the axes."""

    @property
    def sampled(self) -> bool:
        """Whether it picks settings by their scores or by chance: such sessions never enter a benchmark table."""
        return True


class Exhaustive(Method, frozen=True):
    """Every point of a grid, in order; the first axis varies slowest."""

    kind: Literal["exhaustive"] = "exhaustive"

    @property
    def sampled(self) -> bool:
        return False


class RandomSearch(Method, frozen=True):
    """Independent draws; grid axes are crossed with them."""

    kind: Literal["random"] = "random"
    trials: Count = Field(kw_only=False, default=16, description="Draws")
    seed: Natural = Field(default=0, description="Of the draws")


class Asha(Method, frozen=True):
    """Random draws; the worse of them are stopped early: Li et al. (2020)."""

    kind: Literal["asha"] = "asha"
    trials: Count = Field(kw_only=False, default=16, description="Draws")
    seed: Natural = Field(default=0, description="Of the draws")
    grace: Count = Field(description="Frames that every trial gets")
    eta: Annotated[int, Strict(), Gt(1), BeforeValidator(whole)] = Field(
        default=3, description="One in eta goes on at each rung"
    )


class Nevergrad(Method, frozen=True):
    """Ask, run, tell with an optimizer of the library Nevergrad."""

    kind: Literal["nevergrad"] = "nevergrad"
    trials: Count = Field(kw_only=False, default=16, description="Trials in all")
    seed: Natural = Field(default=0, description="Of the optimizer")
    optimizer: str = Field(default="NGOpt", description="As Nevergrad calls it")


class Search(Spec, frozen=True):
    """The trials of an experiment that is not a single one."""

    dimensions: tuple[Dimension, ...] = Field(min_length=1, description="The axes")
    method: Method = Field(default=Exhaustive(), description="How trials are drawn from them")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        paths = list(self.paths())
        if repeated := next((path for path in paths if paths.count(path) > 1), None):
            raise ValueError(f"{repeated} is an axis twice")
        drawn = [dimension for dimension in self.dimensions if not isinstance(dimension.axis, Grid)]
        if drawn and not self.method.sampled:
            raise ValueError(
                f"{drawn[0].paths[0]} is drawn by chance: say how, with .random(...), .asha(...) or .nevergrad(...)"
            )
        if self.method.sampled and not drawn:
            raise ValueError(f"{self.method.kind} has nothing to draw: every axis is a grid")
        return self

    def paths(self) -> Iterator[str]:
        """Every path that an axis moves."""
        for dimension in self.dimensions:
            yield from dimension.paths
