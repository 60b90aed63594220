"""From the axes of `.search(...)` to the dimensions of the spec: paths are resolved and values validated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rldsl.builders.axes import Axes, When, Zipped
from rldsl.spec.agent import Agent
from rldsl.spec.base import Spec
from rldsl.spec.budget import Budget, Evaluation
from rldsl.spec.environment import Environment
from rldsl.spec.errors import SpecError
from rldsl.spec.paths import Parts, assign, get, resolve, unknown_path
from rldsl.spec.search import Axis, Condition, Dimension, Listed, shown

PARTS: Mapping[str, type[Spec]] = {"agent": Agent, "env": Environment, "budget": Budget, "evaluation": Evaluation}
"""The parts of an experiment that can be an axis, as a whole or by one of their fields."""


@dataclass(frozen=True)
class _Given:
    """An axis as it was given: by names that are yet to be resolved, with a condition and the line of its `when`."""

    names: tuple[str, ...]
    axis: Axis
    when: Condition | None = None
    where: str | None = None


def make_dimensions(parts: Parts, groups: Sequence[Axes | When], axes: Mapping[str, Axis]) -> tuple[Dimension, ...]:
    """The dimensions of these axes. Values are validated for every agent and environment that they can meet."""
    given = [*_flat(groups), *(_Given((name,), axis) for name, axis in axes.items())]
    if not given:
        raise SpecError(".search needs an axis, such as gamma=uniform(0.9, 0.99)")
    return tuple(_Maker(parts, given).make(one) for one in given)


def _flat(groups: Sequence[Axes | When], when: Condition | None = None, where: str | None = None) -> Iterator[_Given]:
    for group in groups:
        if isinstance(group, When) and when is None:
            yield from _flat(group.groups, group.condition, group.where)
        elif isinstance(group, Zipped):
            yield _Given(group.names, group.axis, when, where)
        elif isinstance(group, Mapping):
            yield from (_Given((path,), axis, when, where) for path, axis in group.items())
        else:
            raise SpecError(
                f".search takes axes by name, zipped(...), when(...) or a dictionary of paths, got {group!r}", where
            )


class _Maker:
    """Resolves and validates axes, knowing the other axes of the same search."""

    def __init__(self, parts: Parts, given: Sequence[_Given]) -> None:
        self.parts = parts
        self.given = given

    def make(self, one: _Given) -> Dimension:
        """The dimension of an axis; errors name the line of its `when`, if it has one."""
        try:
            return self._make(one)
        except SpecError as error:
            raise SpecError(error.sentence, one.where or error.where) from None

    def _make(self, one: _Given) -> Dimension:
        if not isinstance(one.axis, Axis):
            raise SpecError(f"{one.names[0]} should be an axis such as grid(...) or uniform(...), got {one.axis!r}")
        paths = self._paths(one)
        when = one.when and one.when.with_(path=self._owner(one.when)[1])
        dimension = Dimension(paths=paths, axis=one.axis, when=when)
        contexts = {path: self._all_contexts(one, path) for path in paths}
        for value in one.axis.ends():
            for path, each in dimension.assignments(value).items():
                for context in contexts[path]:
                    _check_value(context, path, each)
        return dimension

    def _paths(self, one: _Given) -> tuple[str, ...]:
        known = self._contexts(one)
        known += [parts for other in self.given if other is not one for parts in self._wholes(other, known[:1])]
        return tuple(_path(name, known) for name in one.names)

    def _contexts(self, one: _Given, depth: int = 0) -> list[Parts]:
        """The parts of the experiment for every value of the axis that this one depends on."""
        if one.when is None or depth > len(self.given):  # the search refuses axes that depend on themselves
            return [self.parts]
        owner, path = self._owner(one.when)
        values = [value for value in _values(owner, path) if one.when.matches(value)]
        if not values:
            listed = ", ".join(shown(value) for value in _values(owner, path))
            raise SpecError(f"{path} is never {shown(one.when.value)}; its values: {listed}")
        return [_replaced(parts, path, value) for parts in self._contexts(owner, depth + 1) for value in values]

    def _owner(self, when: Condition) -> tuple[_Given, str]:
        """The axis that a condition is about, and its path."""
        path = resolve(self.parts, when.path) or when.path
        for other in self.given:
            if isinstance(other.axis, Listed):
                for name in other.names:
                    if path in (name, resolve(self.parts, name)):
                        return other, path
        raise SpecError(f"when({when.path!r}, ...) needs {when.path} to be an axis with choice(...) or grid(...)")

    def _all_contexts(self, one: _Given, path: str) -> list[Parts]:
        """The contexts of an axis, for every value of the axes that replace a spec around `path`."""
        contexts = self._contexts(one)
        owner = self._owner(one.when)[0] if one.when else None
        for other in self.given:
            around = [name for name in other.names if path.startswith(f"{resolve(self.parts, name) or name}.")]
            if around and other is not owner and other.when is None:
                contexts = self._wholes(other, contexts)
        if bad := next((parts for parts in contexts if resolve(parts, path) != path), None):
            part, _, field = path.rpartition(".")
            raise SpecError(
                f"{path} is not a field of {shown(get(bad, part))}: "
                f"give its axis for the others alone, as in when({part!r}, ..., {field}=...)"
            )
        return contexts

    def _wholes(self, other: _Given, contexts: list[Parts]) -> list[Parts]:
        """The contexts with every value of an axis that replaces a spec; unchanged if it replaces none."""
        if not isinstance(other.axis, Listed) or len(other.names) != 1 or other.when is not None:
            return contexts
        path = resolve(self.parts, other.names[0])
        if path is None or (path not in PARTS and not isinstance(get(self.parts, path), Spec)):
            return contexts
        return [_replaced(parts, path, value) for parts in contexts for value in other.axis.values]


def _path(name: str, contexts: Sequence[Parts]) -> str:
    path = next((path for parts in contexts if (path := resolve(parts, name))), None)
    if path is None:
        raise SpecError(unknown_path(name, *contexts))
    if path.partition(".")[0] not in PARTS:
        raise SpecError(f"{path} cannot be an axis: trials differ in {', '.join(PARTS)}")
    return path


def _values(given: _Given, path: str) -> list[Any]:
    return Dimension(paths=given.names, axis=given.axis).values_of(given.names[0] if len(given.names) == 1 else path)


def _replaced(parts: Parts, path: str, value: Any) -> Parts:
    """The parts with the value at `path`."""
    return {**parts, path.partition(".")[0]: _check_value(parts, path, value)}


def _check_value(parts: Parts, path: str, value: Any) -> Spec:
    """Validates a value of an axis for its field; returns the part of the experiment that has it."""
    head, _, rest = path.partition(".")
    return PARTS[head].parse(assign(parts[head].data(), rest, value) if rest else value, root=head)
