"""The points of a search that do not depend on results: grids, random samples and Sobol sequences.

They are made one at a time. Sample i does not depend on the number of samples: a search can be extended.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from rldsl.spec.axes import IntUniform, Listed
from rldsl.spec.search import Asha, Dimension, Nevergrad, Point, Sampling, Search, Sobol, parents_first, point_of

Cells: TypeAlias = list[tuple[Dimension, Any]]
"""Dimensions with their values."""


def count(search: Search) -> int:
    """How many points a search has, without making them."""
    return _combinations(search.crossed_dimensions) * _samples(search)


def points(search: Search) -> Iterator[Point]:
    """The points of a search in order; none if they depend on results."""
    if not isinstance(search.method, Nevergrad):
        yield from itertools.islice(endless_points(search), count(search))


def endless_points(search: Search) -> Iterator[Point]:
    """The points of a search and those that would follow if it had more trials."""
    crossed = parents_first(search.crossed_dimensions)
    for sample in _sampled(search):
        for cells in _crossed(crossed, {}):
            yield point_of([*cells, *sample])


def combinations(search: Search, most: int) -> Iterator[tuple[Point, Point]]:
    """Every combination of listed values, at most so many; with the lowest and with the highest values of ranges."""
    listed = parents_first([one for one in search.dimensions if isinstance(one.axis, Listed)])
    ranges = [one for one in search.dimensions if not isinstance(one.axis, Listed)]
    low, high = ([(one, one.axis.at(u)) for one in ranges] for u in (0.0, 1.0))
    for cells in itertools.islice(_crossed(listed, {}), most):
        yield point_of([*cells, *low]), point_of([*cells, *high])


def _samples(search: Search) -> int:
    return search.method.trials if isinstance(search.method, Sampling) else 1


def _combinations(dimensions: Sequence[Dimension]) -> int:
    """The number of points of a grid: each dimension with a condition adds to the values for which it holds."""
    paths = {path for dimension in dimensions for path in dimension.paths}
    roots = [one for one in dimensions if one.when is None or one.when.path not in paths]
    return math.prod(_size(one, dimensions) for one in roots)


def _size(dimension: Dimension, dimensions: Sequence[Dimension]) -> int:
    """The number of points of a dimension and of those that depend on it."""
    assert isinstance(dimension.axis, Listed)
    children = [one for one in dimensions if one.when is not None and one.when.path in dimension.paths]
    if not children:
        return len(dimension.axis.values)
    settings = (dimension.assignments(value) for value in dimension.axis.values)
    return sum(math.prod(_size(one, dimensions) for one in children if one.active(point)) for point in settings)


def _crossed(dimensions: Sequence[Dimension], point: Point) -> Iterator[Cells]:
    """Every combination of the grid's values; the first dimension varies slowest."""
    if not dimensions:
        yield []
        return
    first, *rest = dimensions
    if not first.active(point):
        yield from _crossed(rest, point)
        return
    assert isinstance(first.axis, Listed)
    for value in first.axis.values:
        for cells in _crossed(rest, point | first.assignments(value)):
            yield [(first, value), *cells]


def _sampled(search: Search) -> Iterator[Cells]:
    """The samples of the method; a single one without values if there is nothing to sample."""
    dimensions, method = search.sampled_dimensions, search.method
    if not dimensions:
        yield []
        return
    assert isinstance(method, Sampling)
    sobol = isinstance(method, Sobol) or (isinstance(method, Asha) and method.sampler == "sobol")
    yield from (_sobol if sobol else _random)(dimensions, method.seed)


def _random(dimensions: Sequence[Dimension], seed: int) -> Iterator[Cells]:
    """Random samples, each with its own RNG."""
    for index in itertools.count():
        stream = random.Random(f"{seed}/{index}")
        yield [(dimension, _draw(dimension, stream)) for dimension in dimensions]


def _draw(dimension: Dimension, stream: random.Random) -> Any:
    axis = dimension.axis
    if isinstance(axis, Listed):
        return axis.values[stream.randrange(len(axis.values))]
    if isinstance(axis, IntUniform):
        return stream.randint(axis.low, axis.high)
    return axis.at(stream.random())


SOBOL_BLOCK = 64
"""Points of a Sobol sequence that are made at once, a power of 2 as its balance demands."""


def _sobol(dimensions: Sequence[Dimension], seed: int) -> Iterator[Cells]:
    """A scrambled Sobol sequence, mapped to each axis by its quantiles."""
    from scipy.stats import qmc  # its import takes half a second

    sequence = qmc.Sobol(len(dimensions), scramble=True, rng=seed)
    while True:
        for row in sequence.random(SOBOL_BLOCK):
            yield [(dimension, dimension.axis.at(float(u))) for dimension, u in zip(dimensions, row, strict=True)]
