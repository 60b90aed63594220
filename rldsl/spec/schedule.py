"""Schedules of hyperparameters over a session's frames."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from rldsl.spec.base import Count, Kind, Positive, Real, whole


def _frames_or_fraction(value: Any) -> Any:
    if isinstance(value, float) and 0 < value < 1:
        return value
    frames = whole(value)
    if not isinstance(frames, int):
        raise PydanticCustomError("whole_number", "should be a whole number")
    if frames <= 0:
        raise PydanticCustomError("domain", "should be {domain}", {"domain": "greater than 0"})
    return frames


FramesOrFraction: TypeAlias = Annotated[int | float, BeforeValidator(_frames_or_fraction)]
"""A number of frames, or below 1 a fraction of the budget."""


class Schedule(Kind, frozen=True):
    """A number as a function of a session's frame count."""

    def extremes(self) -> tuple[float, ...]:
        """Values that include the smallest and the largest value of the schedule."""
        raise NotImplementedError

    @property
    def needs_budget(self) -> bool:
        """Whether its value at a frame depends on the session's budget: then a session cannot be extended."""
        return True


class Constant(Schedule, frozen=True):
    """A constant. Fields store it as a plain number."""

    kind: Literal["constant"] = "constant"
    value: Real = Field(kw_only=False, description="The value")

    def extremes(self) -> tuple[float, ...]:
        return (self.value,)

    @property
    def needs_budget(self) -> bool:
        return False


class Decay(Schedule, frozen=True):
    """From `start` to `end` over a number of frames, constant afterwards."""

    start: Real = Field(kw_only=False, description="Initial value")
    end: Real = Field(kw_only=False, default=0.0, description="Final value")
    over: FramesOrFraction | None = Field(
        default=None,
        description="Frames from `start` to `end`, or below 1 a fraction of the budget; None: the whole budget",
    )

    def extremes(self) -> tuple[float, ...]:
        return (self.start, self.end)

    @property
    def needs_budget(self) -> bool:
        return self.over is None or self.over < 1


class Linear(Decay, frozen=True):
    """Linear interpolation from `start` to `end`."""

    kind: Literal["linear"] = "linear"


class Cosine(Decay, frozen=True):
    """Cosine annealing from `start` to `end`."""

    kind: Literal["cosine"] = "cosine"


class Exponential(Decay, frozen=True):
    """Exponential decay (or growth) from `start` to `end`, both positive."""

    kind: Literal["exponential"] = "exponential"
    start: Positive = Field(kw_only=False, description="Initial value")
    end: Positive = Field(kw_only=False, description="Final value")


class Steps(Schedule, frozen=True):
    """Piecewise constant: `values[i]` until frame `boundaries[i]`, then the last value."""

    kind: Literal["steps"] = "steps"
    boundaries: tuple[Count, ...] = Field(kw_only=False, min_length=1, description="Frames in increasing order")
    values: tuple[Real, ...] = Field(kw_only=False, description="Values, one more than boundaries")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.values) != len(self.boundaries) + 1:
            raise ValueError(
                f"Steps needs one value more than boundaries, got {len(self.values)} and {len(self.boundaries)}"
            )
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise ValueError(f"Steps.boundaries should be increasing, got {list(self.boundaries)}")
        return self

    def extremes(self) -> tuple[float, ...]:
        return self.values

    @property
    def needs_budget(self) -> bool:
        return False


@dataclass(frozen=True)
class Within:
    """Annotates `float | Schedule` with bounds for the number or for all values of the schedule."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.validate,
            serialization=core_schema.plain_serializer_function_ser_schema(_dump),
            metadata={"within": self},
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        names = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
        bounds = {names[name]: bound for name, bound in vars(self).items() if bound is not None}
        family = Schedule.__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [{"type": "number", **bounds}, family]}

    def validate(self, value: Any) -> float | Schedule:
        if value.__class__ is float and self._holds(value):
            return value
        rate = self._number_or_schedule(value)
        values = rate.extremes() if isinstance(rate, Schedule) else (rate,)
        for one in values:
            if not math.isfinite(one):
                raise PydanticCustomError("finite_number", "should be a finite number")
            self._check(one)
        return rate

    @staticmethod
    def _number_or_schedule(value: Any) -> float | Schedule:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str | bool) or value is None:
            raise PydanticCustomError("rate_type", "should be a number or a schedule")
        schedule = Schedule._dispatch(value)
        assert isinstance(schedule, Schedule)
        return schedule.value if isinstance(schedule, Constant) else schedule

    def _holds(self, value: float) -> bool:
        low = (self.gt is None or value > self.gt) and (self.ge is None or value >= self.ge)
        high = (self.lt is None or value < self.lt) and (self.le is None or value <= self.le)
        return low and high and math.isfinite(value)

    def _check(self, value: float) -> None:
        bounds = (
            (self.gt, operator.gt, "greater than"),
            (self.ge, operator.ge, "at least"),
            (self.lt, operator.lt, "less than"),
            (self.le, operator.le, "at most"),
        )
        for bound, holds, words in bounds:
            if bound is not None and not holds(value, bound):
                raise PydanticCustomError("domain", "should be {domain}", {"domain": f"{words} {bound:g}"})


def _dump(value: float | Schedule) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Schedule) else value


NonNegativeRate: TypeAlias = Annotated[float | Schedule, Within(ge=0)]
PositiveRate: TypeAlias = Annotated[float | Schedule, Within(gt=0)]
FractionRate: TypeAlias = Annotated[float | Schedule, Within(ge=0, le=1)]
