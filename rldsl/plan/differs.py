"""What tells the trials of an experiment apart: the points of its axes, with specs of one kind down to their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldsl.spec.paths import differences, get
from rldsl.spec.search import Point, Search, plain


class Differing:
    """Reduces points: of an axis over specs of one kind, only the fields in which its values differ are left."""

    def __init__(self, search: Search) -> None:
        values = {
            path: [plain(value) for dimension in search.dimensions for value in dimension.values_of(path)]
            for path in search.paths()
        }
        self.fields = {path: _differing_fields(choices) for path, choices in values.items()}
        self.same = {
            dimension.paths[0]
            for dimension in search.dimensions
            if dimension.when is None and [*dimension.axis.ends()] == values[dimension.paths[0]][:1]
        }
        """Paths of axes with a single value."""

    def reduced(self, point: Point) -> Point:
        """The settings of a point, such as `agent.net.hidden` instead of the whole `agent`."""
        shown: dict[str, Any] = {}
        for path, value in point.items():
            if path in self.same:
                continue
            fields = self.fields.get(path)
            if not fields or not isinstance(value, Mapping):
                shown[path] = value
                continue
            for field in fields:
                shown[f"{path}.{field}"] = _value_at(value, field)
        return shown


def _differing_fields(values: list[Any]) -> list[str]:
    """The fields in which specs of one kind differ; none if the values are anything else."""
    if len(values) < 2 or not all(isinstance(value, Mapping) and "kind" in value for value in values):
        return []
    if len({value["kind"] for value in values}) > 1:
        return []
    return list(dict.fromkeys(path for other in values[1:] for path, _, _ in differences(values[0], other)))


def _value_at(value: Mapping[str, Any], path: str) -> Any:
    try:
        return get(value, path)
    except (KeyError, AttributeError, TypeError):  # another kind of spec further down
        return None
