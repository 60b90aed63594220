"""Nevergrad as a suggester: a seeded optimizer that is replayed from the journal."""

from __future__ import annotations

from rldsl.search.suggest import Events
from rldsl.spec.search import Point, Search


class NevergradSuggester:
    def __init__(self, search: Search) -> None:
        self.search = search

    def point(self, events: Events) -> Point | None:
        raise NotImplementedError
