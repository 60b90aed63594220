"""Nevergrad as a suggester: a seeded optimizer that is replayed from the journal.

The optimizer is asked at each `suggested` event and told at the `finished` or `failed` event of the trial, in the
order of the journal. Nevergrad minimizes: it is told the negative score. It has no notion of a failure: a failed trial,
or one without a value, is told the worst score so far; before the first score it is left out. A trial is told once: the
result of a failed trial that is trained again is told only if its failure was left out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rldsl.search.objective import Objective
from rldsl.search.suggest import Events
from rldsl.spec.errors import SpecError
from rldsl.spec.search import (
    Axis,
    Choice,
    Interval,
    IntUniform,
    Listed,
    LogitUniform,
    LogUniform,
    Nevergrad,
    Point,
    Search,
    point_of,
)
from rldsl.store.errors import StoreError

TOLERANCE = 1e-6
"""Relative difference up to which a replayed number is the journalled one: machines differ in rounding."""


class NevergradSuggester:
    """Suggests the points that a Nevergrad optimizer asks for."""

    def __init__(self, search: Search) -> None:
        assert isinstance(search.method, Nevergrad)
        self.search = search
        self.trials = search.method.trials
        self._start()

    def _start(self) -> None:
        self.optimizer = _Optimizer(self.search)
        self.seen = 0
        self.suggested = 0
        self.next: Point | None = None
        """The point that was asked for after the events seen so far."""

    def point(self, events: Events) -> Point | None:
        """The point of the next trial; None if all were suggested. Only events that are new are replayed."""
        if self._asked_too_early(events):
            self._start()  # an optimizer cannot take a question back
        for event in events[self.seen :]:
            self._replay(event)
        self.seen = len(events)
        if self.suggested == self.trials:
            return None
        self.next = self.next or self.optimizer.ask()
        return self.next

    def _asked_too_early(self, events: Events) -> bool:
        """Whether the optimizer was asked before it was told a result of these events."""
        new = (event["event"] for event in events[self.seen :])
        first = next((name for name in new if name in ("suggested", "finished", "failed")), None)
        return len(events) < self.seen or (self.next is not None and first in ("finished", "failed"))

    def _replay(self, event: Mapping[str, Any]) -> None:
        name = event["event"]
        if name == "suggested" and event["trial"] == self.suggested:
            _refuse_other(event, self.next or self.optimizer.ask())
            self.next = None
            self.suggested += 1
        elif name == "finished":
            values = [math.nan if value is None else value for value in event["values"].values()]
            self.optimizer.tell(event["trial"], values)
        elif name == "failed":
            self.optimizer.tell(event["trial"], [])


class _Optimizer:
    """A seeded Nevergrad optimizer over the dimensions of a search."""

    def __init__(self, search: Search) -> None:
        import nevergrad  # its import takes seconds

        method = search.method
        assert isinstance(method, Nevergrad)
        self.dimensions = search.dimensions
        self.objective = Objective(search.objective, search.maximize)
        self.asked: list[Any] = []
        self.told: set[int] = set()
        self.left_out: set[int] = set()
        self.worst: float | None = None
        space = parametrization(search)
        space.random_state.seed(method.seed)
        with _quiet():
            registered = nevergrad.optimizers.registry[method.optimizer]
            self.optimizer = registered(space, budget=method.trials, num_workers=method.parallel)

    def ask(self) -> Point:
        """The point of the next trial."""
        with _quiet():
            candidate = self.optimizer.ask()
        self.asked.append(candidate)
        values = [_value(one.axis, candidate.value[str(index)]) for index, one in enumerate(self.dimensions)]
        return point_of(list(zip(self.dimensions, values, strict=True)))

    def tell(self, trial: int, values: list[float]) -> None:
        """Tells the result of a trial; it failed if it has no values."""
        score = self.objective.score(values)
        failed = not math.isfinite(score)
        if trial in self.told or (failed and trial in self.left_out):
            return
        if failed and self.worst is None:
            self.left_out.add(trial)
            return
        self.worst = score if self.worst is None else self.worst if failed else min(score, self.worst)
        self.told.add(trial)
        with _quiet():
            self.optimizer.tell(self.asked[trial], -(self.worst if failed else score))


def parametrization(search: Search) -> Any:
    """The `nevergrad.p.Dict` of a search: a parameter for each dimension, by its index."""
    import nevergrad

    space = nevergrad.p.Dict(**{str(index): _parameter(one.axis) for index, one in enumerate(search.dimensions)})
    if space.dimension == 0:
        raise SpecError("nevergrad has nothing to choose: every axis has a single value")
    return space


def _parameter(axis: Axis) -> Any:
    """The Nevergrad parameter of an axis, with the same distribution and scale. Listed values are chosen by index."""
    from nevergrad import p

    if isinstance(axis, Listed):
        number = len(axis.values)
        if number == 1:
            return p.Constant(0)
        return p.TransitionChoice(number) if isinstance(axis, Choice) and axis.ordered else p.Choice(number)
    assert isinstance(axis, Interval)
    if isinstance(axis, LogUniform):
        return p.Log(lower=axis.low, upper=axis.high)
    if isinstance(axis, IntUniform):  # half a step beyond both ends, which would otherwise be half as likely
        return p.Scalar(lower=axis.low - 0.5, upper=axis.high + 0.5).set_integer_casting()
    return p.Scalar(lower=axis.scaled(axis.low), upper=axis.scaled(axis.high))


def _value(axis: Axis, value: Any) -> Any:
    """The value of an axis for a value of its parameter."""
    if isinstance(axis, Listed):
        return axis.values[int(value)]
    assert isinstance(axis, Interval)
    if isinstance(axis, IntUniform):
        return int(axis.clipped(int(value)))
    return axis.clipped(axis.unscaled(float(value)) if isinstance(axis, LogitUniform) else float(value))


def _refuse_other(event: Mapping[str, Any], point: Point) -> None:
    """The journal must hold what the optimizer asks for again, or the results would be told for other points."""
    if not _same(event["point"], point):
        raise StoreError(
            f"trial {event['trial']} of this search is not the one that Nevergrad suggests now: it was started with "
            "another version of nevergrad or rldsl, and can only be continued with that one"
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Nevergrad's warnings, which are addressed to its developers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
