"""Which configuration to try next: a pure function of the search's spec and of the events in its journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from rldsl.plan.points import count, endless_points
from rldsl.spec.experiment import Experiment
from rldsl.spec.search import Nevergrad, Point, Search

Events: TypeAlias = Sequence[Mapping[str, Any]]
"""The events of a search's journal, from the first on."""


class Suggester(Protocol):
    """Suggests the points of a search."""

    def point(self, events: Events) -> Point | None:
        """The point of the next trial, whose number is that of the trials so far; None if all were suggested.

        `events` are all events so far. The driver appends `suggested` to the journal before any other event, so that
        whoever reads the journal later is given the same point at the same place.
        """


def suggester(experiment: Experiment) -> Suggester:
    """The suggester of a search or a grid."""
    assert experiment.search is not None
    if isinstance(experiment.search.method, Nevergrad):
        from rldsl.search.nevergrad import NevergradSuggester

        return NevergradSuggester(experiment.search)
    return SampledSuggester(experiment.search)


class SampledSuggester:
    """Points that do not depend on results: grids, random samples, Sobol sequences."""

    def __init__(self, search: Search) -> None:
        self.total = count(search)
        self.made: list[Point] = []
        self.source: Iterator[Point] = endless_points(search)

    def point(self, events: Events) -> Point | None:
        number = len({event["trial"] for event in events if event["event"] == "suggested"})
        if number >= self.total:
            return None
        while len(self.made) <= number:
            self.made.append(next(self.source))
        return self.made[number]
