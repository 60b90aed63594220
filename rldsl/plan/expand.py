"""The trials of an experiment, made one at a time, so that huge grids cost nothing until they are iterated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rldsl.plan import points
from rldsl.spec.base import Spec
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment, Trial
from rldsl.spec.paths import assign, parts
from rldsl.spec.search import Listed, Nevergrad, Point, shown

MOST_CHECKED = 2000
"""Combinations of listed values that are checked before a search draws them."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial and the settings in which it differs from the others."""

    trial: Trial
    differs: Point


def count(experiment: Experiment) -> int:
    """How many trials an experiment has, without making them."""
    return 1 if experiment.search is None else points.count(experiment.search)


def is_adaptive(experiment: Experiment) -> bool:
    """Whether each trial depends on the scores of earlier ones, so that no plan can list them."""
    return experiment.search is not None and isinstance(experiment.search.method, Nevergrad)


def expand(experiment: Experiment) -> Iterator[PlannedTrial]:
    """The trials of an experiment in order, each validated as it is made; none if it is adaptive."""
    if experiment.search is None:
        yield PlannedTrial(experiment.base(), {})
        return
    maker = _TrialMaker(experiment)
    for point in points.points(experiment.search):
        yield PlannedTrial(maker.make(point), point)


def trial_of(experiment: Experiment, point: Point) -> Trial:
    """The trial of a search at a point; raises `SpecError` if its settings do not fit together."""
    return _TrialMaker(experiment).make(point)


def check_choices(experiment: Experiment) -> None:
    """Refuses a search with listed values that do not fit together, before it draws them.

    A range has its lowest or its highest value meanwhile. If nothing fits, its other values may: that is not known.
    """
    if experiment.search is None or not experiment.sampled:
        return  # the points of a grid are all made
    maker = _TrialMaker(experiment)
    found = [
        maker.problem(low) and maker.problem(high) for low, high in points.combinations(experiment.search, MOST_CHECKED)
    ]
    has_ranges = not all(isinstance(one.axis, Listed) for one in experiment.search.dimensions)
    if (problem := next(filter(None, found), None)) and not (has_ranges and all(found)):
        raise problem


class _TrialMaker:
    """Makes the trials of one experiment, sharing the parts that no axis sets."""

    def __init__(self, experiment: Experiment) -> None:
        assert experiment.search is not None
        self.name, self.line = experiment.name, experiment.lines.searched
        self.parts: dict[str, Any] = {name: getattr(experiment, name) for name in Trial.model_fields}
        heads = _by_head(experiment.search.paths())
        if unknown := [head for head in heads if head not in self.parts]:
            raise SpecError(f"{self.name}: the axis {unknown[0][:80]!r} names no field of a trial")
        self.data: dict[str, Any] = {head: _opened(self.parts[head], inner) for head, inner in heads.items()}

    def problem(self, point: Point) -> SpecError | None:
        """Why there is no trial at a point; None if there is one."""
        try:
            self.make(point)
        except SpecError as error:
            return error
        return None

    def make(self, point: Point) -> Trial:
        data: dict[str, Any] = self.data
        for path in sorted(point, key=lambda path: path.count(".")):
            data = assign(data, path, point[path])
        try:
            return Trial.parse({**self.parts, **data}, root=self.name)
        except SpecError as error:
            at = ", ".join(f"{path} = {shown(value)}" for path, value in point.items())
            raise SpecError(f"{error.sentence} (in {self.name}, at {at})", self.line) from None


def _opened(part: Any, paths: list[str]) -> Any:
    """The part as plain data along these paths; parts that no axis sets stay validated specs."""
    if not isinstance(part, Spec):
        return part
    moved = _by_head(paths)
    return {name: _opened(value, moved[name]) if moved.get(name) else value for name, value in parts(part).items()}


def _by_head(paths: Iterable[str]) -> dict[str, list[str]]:
    """The rests of paths by their first name."""
    rests: dict[str, list[str]] = {}
    for path in paths:
        head, _, rest = path.partition(".")
        rests.setdefault(head, []).extend([rest] if rest else [])
    return rests
