"""The settings in which the trials of an experiment differ. Only the differences are kept in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldsl.report.words import value
from rldsl.spec.paths import differences, get

MAX_IN_LABEL = 4


class VariedSettings:
    """The trials of one experiment: the first in full, every other one as its differences from the first."""

    def __init__(self) -> None:
        self.first: Mapping[str, Any] | None = None
        self.trials: dict[str, dict[str, Any]] = {}
        self.paths: dict[str, None] = {}  # used as an ordered set

    def add(self, trial: str, spec: Mapping[str, Any]) -> None:
        """Adds a trial; does nothing if it is already known."""
        if trial in self.trials:
            return
        if self.first is None:
            self.first = spec
        self.trials[trial] = {path: own for path, _, own in differences(self.first, spec)}
        # A new dict: another thread may be iterating over the old one.
        self.paths = self.paths | dict.fromkeys(self.trials[trial])

    def settings(self, trial: str) -> dict[str, Any]:
        """The values that a trial has for the settings in which the trials differ."""
        own = self.trials.get(trial, {})
        return {path: own[path] if path in own else self._of_first(path) for path in self.paths}

    def label(self, trial: str) -> str:
        """`clip=0.1 gamma=0.99`: at most four of the settings; empty if the experiment has a single trial."""
        settings = list(self.settings(trial).items())
        text = " ".join(f"{path.rpartition('.')[2]}={value(setting)}" for path, setting in settings[:MAX_IN_LABEL])
        return text + (" ..." if len(settings) > MAX_IN_LABEL else "")

    def _of_first(self, path: str) -> Any:
        try:
            return get(self.first, path)
        except (KeyError, AttributeError, TypeError):  # the first trial has no such setting
            return None
