"""What tells the trials of an experiment apart. Of all their settings only the differences are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldsl.report.words import value
from rldsl.spec.paths import differences, get

MOST_SHOWN = 4


class Family:
    """The trials of one experiment: the first in full, each other by what differs from it."""

    def __init__(self) -> None:
        self.first: Mapping[str, Any] | None = None
        self.trials: dict[str, dict[str, Any]] = {}
        self.paths: dict[str, None] = {}  # an ordered set

    def add(self, trial: str, spec: Mapping[str, Any]) -> None:
        """Takes a trial in; one that is known costs nothing."""
        if trial in self.trials:
            return
        if self.first is None:
            self.first = spec
        self.trials[trial] = {path: own for path, _, own in differences(self.first, spec)}
        self.paths = self.paths | dict.fromkeys(self.trials[trial])  # another thread may be walking over the old one

    def settings(self, trial: str) -> dict[str, Any]:
        """The settings of a trial that are not the same in all trials."""
        own = self.trials.get(trial, {})
        return {path: own[path] if path in own else self._first(path) for path in self.paths}

    def label(self, trial: str) -> str:
        """`clip=0.1 gamma=0.99`: the first few of its settings; empty where there is nothing to tell apart."""
        shown = list(self.settings(trial).items())
        text = " ".join(f"{path.rpartition('.')[2]}={value(one)}" for path, one in shown[:MOST_SHOWN])
        return text + (" ..." if len(shown) > MOST_SHOWN else "")

    def _first(self, path: str) -> Any:
        try:
            return get(self.first, path)
        except (KeyError, AttributeError, TypeError):  # a part that the first trial does not have
            return None
