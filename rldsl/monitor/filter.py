"""The query language of the filter: `status:failed -algo:ppo return>400 gamma>=.99 age<1h /ppo-[0-9]/ or word`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, get_args

from rldsl.spec.errors import suggestion
from rldsl.store.session_state import State

FIELDS = ("status", "env", "algo", "experiment", "id", "backend", "seed", "differs", "tag", "note")
STATES = (
    *get_args(State),
    *("compiling", "stalled", "killed", "crashed", "stopping", "resuming"),
)
"""What `status:` finds: states of sessions as the monitor shows them."""
EXACT_FIELDS = frozenset({"seed"})
"""Fields that are compared exactly, not as substrings: seed 1 is not seed 10."""
NUMBERS = (
    *("return", "return_ma", "frame", "frames", "progress", "fps", "time", "left", "age", "seed", "attempts"),
    "target",
)
"""Numbers that every session has, beside its metrics and settings."""
TIMES = frozenset({"time", "left", "age"})
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SIZES = {"k": 1e3, "M": 1e6, "G": 1e9, "%": 0.01}
_WORD = re.compile(r'-?(?:\w+:)?/(?:\\.|[^/\\])+/(?=\s|$)|-?(?:\w+:)?"[^"]*"|\S+')
_COMPARISON = re.compile(r"([A-Za-z_][\w.]*)(>=|<=|!=|>|<|=)(.*)")
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)([a-zA-Z%]?)")


class FilterError(ValueError):
    """A query that cannot be parsed; the message is one sentence for the user."""


class Subject(Protocol):
    """What a filter tests."""

    def text(self, field: str) -> str:
        """One of `FIELDS`, in lower case."""

    def everything(self) -> str:
        """All fields, in lower case."""

    def value(self, name: str) -> object:
        """A number of `NUMBERS`, a metric or a setting; None if it has none of this name."""


@dataclass(frozen=True)
class Term:
    """One word of a query: the field must contain one of the values, or none of them if `excluded`.

    Without a field, all fields are searched.
    """

    field: str | None
    values: tuple[str, ...]
    excluded: bool

    def accepts(self, subject: Subject) -> bool:
        return self._matches(subject) != self.excluded

    def _matches(self, subject: Subject) -> bool:
        text = subject.everything() if self.field is None else subject.text(self.field)
        if self.field in EXACT_FIELDS:
            return text in self.values
        return any(value in text for value in self.values)


@dataclass(frozen=True)
class Pattern:
    """A regular expression, which must match somewhere in the field, or nowhere if `excluded`."""

    field: str | None
    pattern: re.Pattern[str]
    excluded: bool

    def accepts(self, subject: Subject) -> bool:
        text = subject.everything() if self.field is None else subject.text(self.field)
        return (self.pattern.search(text) is not None) != self.excluded


@dataclass(frozen=True)
class Comparison:
    """`return>400`: compares a number, a metric or a setting. A session without it is not accepted."""

    name: str
    sign: str
    number: float | None
    text: str
    excluded: bool

    def accepts(self, subject: Subject) -> bool:
        return self._holds(subject.value(self.name)) != self.excluded

    def _holds(self, value: object) -> bool:
        if isinstance(value, bool) or value is None or not isinstance(value, int | float) or self.number is None:
            same = value is not None and str(value).lower() == self.text
            return {"=": same, "!=": value is not None and not same}.get(self.sign, False)
        return OPERATORS[self.sign](value, self.number)


Condition = Term | Pattern | Comparison


@dataclass(frozen=True)
class Filter:
    """Accepts a session if all conditions of one of the alternatives do."""

    alternatives: tuple[tuple[Condition, ...], ...] = ()

    def accepts(self, subject: Subject) -> bool:
        if not self.alternatives:
            return True
        return any(all(one.accepts(subject) for one in conditions) for conditions in self.alternatives)

    def __bool__(self) -> bool:
        return bool(self.alternatives)

    @property
    def timed(self) -> bool:
        """Whether what it accepts changes with time alone."""
        return any(isinstance(one, Comparison) and one.name == "age" for part in self.alternatives for one in part)


def parse(text: str, names: Collection[str] | None = None) -> Filter:
    """Parses a query. A field without a value, as while it is being typed, is ignored.

    With `names`, the metrics and settings that exist, other names in comparisons are errors.
    """
    parts: list[list[Condition]] = [[]]
    for word in _WORD.findall(text):
        if word.lower() == "or":
            parts.append([])
        elif (condition := _parse_word(word, names)) is not None:
            parts[-1].append(condition)
    return Filter(tuple(tuple(part) for part in parts if part))


def _parse_word(word: str, names: Collection[str] | None) -> Condition | None:
    excluded = word.startswith("-") and len(word) > 1
    word = word.removeprefix("-") if excluded else word
    field, colon, rest = word.partition(":")
    if not colon or word.startswith("/"):
        field, rest = "", word
    elif field not in FIELDS:
        raise FilterError(f"{field} is not a field; {suggestion(field, FIELDS)}")
    if len(rest) > 2 and rest.startswith("/") and rest.endswith("/"):
        return Pattern(field or None, _pattern(rest[1:-1]), excluded)
    if not field and (match := _COMPARISON.fullmatch(rest)):
        return _comparison(match[1], match[2], match[3], excluded, names)
    quoted = rest.startswith('"')
    values = rest.split(",") if field and not quoted else [rest.strip('"')]
    found = tuple(value.lower() for value in values if value)
    for value in found if field == "status" else ():
        if not any(value in state for state in STATES):
            raise FilterError(f"{value} is not a status; {suggestion(value, STATES)}")
    return Term(field or None, found, excluded) if found else None


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE | re.MULTILINE)  # each field is a line
    except re.error as error:
        raise FilterError(f"/{text}/ is not a regular expression: {error}") from None


def _comparison(name: str, sign: str, text: str, excluded: bool, names: Collection[str] | None) -> Comparison | None:
    if not text:
        return None
    if names is not None and name not in NUMBERS and not any(_names(known, name) for known in names):
        raise FilterError(
            f"no session has a {name}; {suggestion(name, [*NUMBERS, *(known.rpartition('.')[2] for known in names)])}"
        )
    number = _number(text, SECONDS if name in TIMES else SIZES)
    if number is None and sign not in ("=", "!="):
        raise FilterError(f"{name}{sign}{text}: {text} is not a number{' such as 30m or 2h' if name in TIMES else ''}")
    return Comparison(name, sign, number, text.lower(), excluded)


def _names(path: str, name: str) -> bool:
    """Whether a name means the setting or metric with this path: `gamma` is `agent.gamma`."""
    return path == name or path.endswith(f".{name}")


def _number(text: str, units: dict[str, float]) -> float | None:
    match = _NUMBER.fullmatch(text)
    if match is None or (match[2] and match[2] not in units):
        return None
    return float(match[1]) * units.get(match[2], 1.0)
