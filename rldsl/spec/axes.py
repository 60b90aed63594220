"""Search axes: the values that a search may assign to a field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from annotated_types import Gt, Lt
from pydantic import BeforeValidator, Field, JsonValue, model_validator

from rldsl.spec.base import Flag, Kind, Positive, Real, Spec, Whole

Probability = Annotated[Real, Gt(0), Lt(1)]


def plain(value: Any) -> Any:
    """The values of an axis as plain data: nested specs become dictionaries."""
    if isinstance(value, Spec):
        return value.data()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def shown(value: Any) -> str:
    """A value of an axis in an error message; specs by their kind."""
    if isinstance(value, Kind):
        return type(value).__name__
    return str(value["kind"]) if isinstance(value, Mapping) and "kind" in value else repr(value)


class Axis(Kind, frozen=True):
    """The values that a search may assign to a field."""

    def ends(self) -> tuple[Any, ...]:
        """Values to validate against the field: if they are valid, so are all values of the axis."""
        raise NotImplementedError

    def at(self, u: float) -> Any:
        """The value at the quantile `u` of the axis's distribution, 0 <= u <= 1."""
        raise NotImplementedError


class Listed(Axis, frozen=True):
    """An axis that lists its values."""

    values: Annotated[tuple[JsonValue, ...], BeforeValidator(plain)] = Field(
        kw_only=False, min_length=1, description="The values; for zipped paths, a list of lists"
    )

    def ends(self) -> tuple[Any, ...]:
        return self.values

    def at(self, u: float) -> Any:
        return self.values[min(int(u * len(self.values)), len(self.values) - 1)]


class Grid(Listed, frozen=True):
    """Every value is used."""

    kind: Literal["grid"] = "grid"


class Choice(Listed, frozen=True):
    """One of the values is sampled, with equal probability."""

    kind: Literal["choice"] = "choice"
    ordered: Flag = Field(
        default=False, description="Whether neighbouring values are similar, which Nevergrad makes use of"
    )


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

    def at(self, u: float) -> Any:
        low, high = self.scaled(self.low), self.scaled(self.high)
        return self.clipped(self.unscaled(low + (high - low) * u))

    def clipped(self, value: float) -> float:
        """The value, or the bound that it is beyond: rounding errors of `unscaled` leave no value out of range."""
        return min(max(value, self.low), self.high)

    def scaled(self, value: float) -> float:
        """The value on the scale on which the axis is uniform."""
        return value

    def unscaled(self, value: float) -> float:
        """The inverse of `scaled`."""
        return value


class Uniform(Interval, frozen=True):
    """Uniform between the bounds."""

    kind: Literal["uniform"] = "uniform"


class LogUniform(Interval, frozen=True):
    """Uniform in the logarithm."""

    kind: Literal["log_uniform"] = "log_uniform"
    low: Positive = Field(kw_only=False, description="Lower bound")
    high: Positive = Field(kw_only=False, description="Upper bound")

    def scaled(self, value: float) -> float:
        return math.log(value)

    def unscaled(self, value: float) -> float:
        return math.exp(value)


class LogitUniform(Interval, frozen=True):
    """Uniform in the logit log(x / (1 - x)): as many values between 0.9 and 0.99 as between 0.99 and 0.999."""

    kind: Literal["logit_uniform"] = "logit_uniform"
    low: Probability = Field(kw_only=False, description="Lower bound")
    high: Probability = Field(kw_only=False, description="Upper bound")

    def scaled(self, value: float) -> float:
        return math.log(value) - math.log1p(-value)

    def unscaled(self, value: float) -> float:
        return 1 / (1 + math.exp(-value)) if value >= 0 else 1 - 1 / (1 + math.exp(value))


class IntUniform(Interval, frozen=True):
    """Uniform over integers, both bounds included."""

    kind: Literal["int_uniform"] = "int_uniform"
    low: Whole = Field(kw_only=False, description="Lower bound")
    high: Whole = Field(kw_only=False, description="Upper bound")

    def ends(self) -> tuple[Any, ...]:
        return (self.low, self.high)

    def at(self, u: float) -> int:
        return min(self.low + int(u * (self.high - self.low + 1)), self.high)
