"""The trials of an experiment, made one at a time, so that huge grids cost nothing until they are iterated."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rldsl.spec.base import Spec
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment, Trial
from rldsl.spec.paths import assign, parts
from rldsl.spec.search import Choice, Dimension, Grid, IntUniform, Listed, LogUniform, Nevergrad, Search, Uniform

Point = dict[str, Any]
"""The path and value of every field that an axis sets."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial and the settings in which it differs from the others."""

    trial: Trial
    differs: Point


def count(experiment: Experiment) -> int:
    """How many trials an experiment has, without making them."""
    if experiment.search is None:
        return 1
    grids = math.prod(_length(dimension) for dimension in experiment.search.dimensions if _is_grid(dimension))
    return grids * getattr(experiment.search.method, "trials", 1)


def is_adaptive(experiment: Experiment) -> bool:
    """Whether each trial depends on the scores of earlier ones, so that no plan can list them."""
    return experiment.search is not None and isinstance(experiment.search.method, Nevergrad)


def expand(experiment: Experiment) -> Iterator[PlannedTrial]:
    """The trials of an experiment in order, each validated as it is made."""
    if experiment.search is None:
        yield PlannedTrial(experiment.base(), {})
        return
    if is_adaptive(experiment):
        return
    maker = _TrialMaker(experiment)
    for point in _points(experiment.search):
        yield PlannedTrial(maker.make(point), point)


class _TrialMaker:
    """Makes the trials of one experiment, sharing the parts that no axis sets."""

    def __init__(self, experiment: Experiment) -> None:
        assert experiment.search is not None
        self.name = experiment.name
        self.parts: dict[str, Any] = {name: getattr(experiment, name) for name in Trial.model_fields}
        self.data: dict[str, Any] = {
            head: _opened(self.parts[head], inner) for head, inner in _by_head(experiment.search.paths()).items()
        }

    def make(self, point: Point) -> Trial:
        data: dict[str, Any] = self.data
        for path in sorted(point, key=lambda path: path.count(".")):
            data = assign(data, path, point[path])
        try:
            return Trial.parse({**self.parts, **data}, root=self.name)
        except SpecError as error:
            at = ", ".join(f"{path} = {value!r}" for path, value in point.items())
            raise SpecError(f"{error.sentence} (in {self.name}, at {at})") from None


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


def _points(search: Search) -> Iterator[Point]:
    grids = [dimension for dimension in search.dimensions if _is_grid(dimension)]
    drawn = [dimension for dimension in search.dimensions if not _is_grid(dimension)]
    for draw in _draws(search, drawn):
        for values in itertools.product(*(_values(dimension) for dimension in grids)):
            yield _merge(zip(grids, values, strict=True), draw)


def _merge(cells: Iterator[tuple[Dimension, Any]] | Any, draw: Point) -> Point:
    point: Point = {}
    for dimension, value in cells:
        point.update(dimension.assignments(value))
    return {**point, **draw}


def _draws(search: Search, drawn: list[Dimension]) -> Iterator[Point]:
    """Sample i does not depend on the number of samples: each has its own RNG."""
    if not drawn:
        yield {}
        return
    method = search.method
    for index in range(getattr(method, "trials", 0)):
        stream = random.Random(f"{getattr(method, 'seed', 0)}/{index}")
        yield _merge(((dimension, _draw(dimension, stream)) for dimension in drawn), {})


def _draw(dimension: Dimension, stream: random.Random) -> Any:
    axis = dimension.axis
    if isinstance(axis, Choice):
        return axis.values[stream.randrange(len(axis.values))]
    if isinstance(axis, LogUniform):
        return math.exp(stream.uniform(math.log(axis.low), math.log(axis.high)))
    if isinstance(axis, IntUniform):
        return stream.randint(axis.low, axis.high)
    assert isinstance(axis, Uniform)
    return stream.uniform(axis.low, axis.high)


def _is_grid(dimension: Dimension) -> bool:
    return isinstance(dimension.axis, Grid)


def _length(dimension: Dimension) -> int:
    return len(_values(dimension))


def _values(dimension: Dimension) -> tuple[Any, ...]:
    assert isinstance(dimension.axis, Listed)
    return dimension.axis.values
