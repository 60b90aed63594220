"""Overrides: settings that a command line changes. An override that matches no field is an error."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol

from rldsl.spec.errors import SpecError, suggestion
from rldsl.spec.experiment import Experiment
from rldsl.spec.json_text import checked_depth, parse_json
from rldsl.spec.paths import Parts, assign, differences, parts, resolve, unknown_path
from rldsl.spec.search import plain
from rldsl.spec.session import Override


@dataclass(frozen=True)
class Assignment:
    """A path, as it was given, and its new value."""

    path: str
    value: Any
    source: str


class Source(Protocol):
    """A source of assignments: command-line options or gin bindings."""

    def assignments(self, experiment: Experiment) -> list[Assignment]:
        """The assignments of this source that apply to an experiment."""

    def check_used(self) -> None:
        """Raises `SpecError` if an assignment applied to no experiment."""


@dataclass
class Options:
    """`--set path=value` and its short forms `--frames` and `--seeds`."""

    given: Sequence[Assignment]
    used: set[str] = field(default_factory=set)
    seen: list[Parts] = field(default_factory=list)

    def assignments(self, experiment: Experiment) -> list[Assignment]:
        known = {name: value for name, value in parts(experiment).items() if name != "name"}
        self.seen.append(known)
        resolved = [(one, resolve(known, one.path)) for one in self.given]
        self.used.update(one.source for one, path in resolved if path is not None)
        return [Assignment(path, one.value, one.source) for one, path in resolved if path is not None]

    def check_used(self) -> None:
        for one in self.given:
            if one.source not in self.used:
                raise SpecError(f"{one.source}: {unknown_path(one.path, *self.seen)}")


@dataclass(frozen=True)
class Overridden:
    """An experiment after its overrides, with the settings that they changed."""

    experiment: Experiment
    overrides: tuple[Override, ...] = ()


def apply(experiments: Iterable[Experiment], sources: Sequence[Source], *, check: bool = True) -> list[Overridden]:
    """The experiments with every override of every source applied and validated.

    With `check`, an override that applies to none of them is an error.
    """
    changed = [_apply(experiment, sources) for experiment in experiments]
    for source in sources if check else ():
        source.check_used()
    return changed


def _apply(experiment: Experiment, sources: Sequence[Source]) -> Overridden:
    given = [one for source in sources for one in source.assignments(experiment)]
    assignments = sorted(given, key=lambda one: one.path.count("."))
    _refuse_disagreement(assignments)
    changed = _assign(experiment, assignments)
    return Overridden(changed, tuple(_changes(experiment, changed, assignments)))


def _assign(experiment: Experiment, assignments: Sequence[Assignment]) -> Experiment:
    """Applies all assignments before validating: intermediate states need not be valid."""
    data: Mapping[str, Any] = experiment.data()
    for one in assignments:
        _refuse_axis(data.get("search"), experiment, one)
        data = assign(data, one.path, one.value)
    try:
        return Experiment.parse(data, root=experiment.name).declared_at(experiment.lines)
    except SpecError as error:
        raise SpecError(f"{_blame(experiment, assignments)}{error.sentence}") from None


def _blame(experiment: Experiment, assignments: Sequence[Assignment]) -> str:
    """The option that is invalid by itself; all of them if none is."""
    for one in assignments:
        try:
            Experiment.parse(assign(experiment.data(), one.path, one.value))
        except SpecError:
            return f"{one.source}: "
    return "".join(f"{source}: " for source in [", ".join(dict.fromkeys(one.source for one in assignments))] if source)


def _refuse_disagreement(assignments: Sequence[Assignment]) -> None:
    first: dict[str, Assignment] = {}
    for one in assignments:
        other = first.setdefault(one.path, one)
        if plain(other.value) != plain(one.value):
            raise SpecError(f"{other.source} and {one.source} disagree about {one.path}")


def _refuse_axis(search: Any, experiment: Experiment, one: Assignment) -> None:
    for path in experiment.search.paths() if search and experiment.search else ():
        if path == one.path or one.path.startswith(f"{path}.") or path.startswith(f"{one.path}."):
            raise SpecError(f"{one.source}: {path} is an axis of {experiment.name}; leave that out with --only")


def _changes(before: Experiment, after: Experiment, assignments: Sequence[Assignment]) -> Iterator[Override]:
    for path, was, now in differences(before.data(), after.data()):
        source = next(one.source for one in reversed(assignments) if f"{path}.".startswith(f"{one.path}."))
        yield Override(path=path, was=was, now=now, source=source)


def parse_set(text: str) -> Assignment:
    """`agent.gamma=0.995`; the value is JSON, a Python literal, or else plain text."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise SpecError(f"--set takes path=value, such as agent.gamma=0.995, got {text!r}")
    return Assignment(path.strip(), _literal(value.strip()), f"--set {text}")


def _literal(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        return _json_value(checked_depth(ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def _json_value(value: Any) -> Any:
    """A Python literal as JSON has it; a `ValueError` for what JSON does not have, such as a set."""
    if isinstance(value, list | tuple):
        return [_json_value(one) for one in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _json_value(one) for name, one in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError("not a JSON value")


def select(experiments: Sequence[Experiment], only: Sequence[str]) -> list[Experiment]:
    """The experiments that `--only` names, by full name or by the last part of it."""
    names = [experiment.name for experiment in experiments]
    for name in only:
        if not any(matches(name, one) for one in names):
            raise SpecError(f"--only {name}: there is no such experiment; {suggestion(name, names)}")
    return [one for one in experiments if not only or any(matches(name, one.name) for name in only)]


def matches(name: str, full: str) -> bool:
    """Whether `--only NAME` means the experiment with this full name; NAME may be a pattern such as `ppo*`."""
    if any(mark in name for mark in "*?["):
        return fnmatchcase(full, name) or fnmatchcase(full, f"*/{name}") or fnmatchcase(full, f"{name}/*")
    return name == full or full.endswith(f"/{name}") or full.startswith(f"{name}/")
