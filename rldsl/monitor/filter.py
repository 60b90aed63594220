"""The query language of the filter: `status:failed env:Hopper -algo:ppo seed:1,2 word`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rldsl.spec.errors import suggestion

FIELDS = ("status", "env", "algo", "experiment", "id", "backend", "seed", "differs")
EXACT_FIELDS = frozenset({"seed"})
"""Fields that are compared exactly, not as substrings: seed 1 is not seed 10."""


class FilterError(ValueError):
    """A query that cannot be parsed; the message is one sentence for the user."""


@dataclass(frozen=True)
class Term:
    """One word of a query: the field must contain one of the values, or none of them if `excluded`.

    Without a field, all fields are searched.
    """

    field: str | None
    values: tuple[str, ...]
    excluded: bool

    def accepts(self, fields: Mapping[str, str]) -> bool:
        names = FIELDS if self.field is None else (self.field,)
        return any(self._matches(name, fields.get(name, "")) for name in names) != self.excluded

    def _matches(self, field: str, text: str) -> bool:
        if self.field is not None and field in EXACT_FIELDS:
            return text in self.values
        return any(value in text.lower() for value in self.values)


@dataclass(frozen=True)
class Filter:
    """Accepts a session if all terms do."""

    terms: tuple[Term, ...] = ()

    def accepts(self, fields: Mapping[str, str]) -> bool:
        return all(term.accepts(fields) for term in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse(text: str) -> Filter:
    """Parses a query. A field without a value, as while it is being typed, is ignored."""
    terms = [_parse_term(word) for word in text.split()]
    return Filter(tuple(term for term in terms if term.values))


def _parse_term(word: str) -> Term:
    excluded = word.startswith("-") and len(word) > 1
    field, colon, rest = word.removeprefix("-" if excluded else "").partition(":")
    if not colon:
        return Term(None, (field.lower(),), excluded)
    if field not in FIELDS:
        raise FilterError(f"{field} is not a field; {suggestion(field, FIELDS)}")
    return Term(field, tuple(value.lower() for value in rest.split(",") if value), excluded)
