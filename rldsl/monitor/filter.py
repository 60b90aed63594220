"""The query language of the filter: `status:failed env:Hopper -algo:ppo seed:1,2 tall`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rldsl.spec.errors import suggestion

FIELDS = ("status", "env", "algo", "experiment", "id", "place", "seed", "differs")
WHOLE = frozenset({"seed"})
"""Fields whose values are compared as a whole: seed 1 is not seed 10."""


class FilterError(ValueError):
    """A query that cannot be understood, in one sentence."""


@dataclass(frozen=True)
class Term:
    """One word: the field must have one of the values, or none of them if `excluded`; no field: any has it."""

    field: str | None
    values: tuple[str, ...]
    excluded: bool

    def accepts(self, subject: Mapping[str, str]) -> bool:
        fields = FIELDS if self.field is None else (self.field,)
        return any(self._has(name, subject.get(name, "")) for name in fields) != self.excluded

    def _has(self, field: str, text: str) -> bool:
        if self.field is not None and field in WHOLE:
            return text in self.values
        return any(value in text.lower() for value in self.values)


@dataclass(frozen=True)
class Filter:
    """All terms must hold."""

    terms: tuple[Term, ...] = ()

    def accepts(self, subject: Mapping[str, str]) -> bool:
        return all(term.accepts(subject) for term in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse(text: str) -> Filter:
    """The filter that a query stands for; a field without a value yet, as while it is typed, says nothing."""
    terms = [_term(word) for word in text.split()]
    return Filter(tuple(term for term in terms if term.values))


def _term(word: str) -> Term:
    excluded = word.startswith("-") and len(word) > 1
    field, colon, rest = word.removeprefix("-" if excluded else "").partition(":")
    if not colon:
        return Term(None, (field.lower(),), excluded)
    if field not in FIELDS:
        raise FilterError(f"{field} is no field; {suggestion(field, FIELDS)}")
    return Term(field, tuple(value.lower() for value in rest.split(",") if value), excluded)
