"""The settings in which the trials of an experiment differ. Only the differences are kept in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rldsl.report.words import settings_text
from rldsl.spec.paths import differences, get
from rldsl.store.errors import StoreError
from rldsl.store.runs import Runs

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
        text = settings_text(dict(settings[:MAX_IN_LABEL]))
        return text + (" ..." if len(settings) > MAX_IN_LABEL else "")

    def _of_first(self, path: str) -> Any:
        try:
            return get(self.first, path)
        except (KeyError, AttributeError, TypeError):  # the first trial has no such setting
            return None


def recorded_settings(runs: Path) -> dict[str, str]:
    """By session of a run directory, what tells its trial from the other trials that have its experiment's name."""
    trials: dict[str, VariedSettings] = {}
    sessions: dict[str, tuple[str, str]] = {}
    for directory in Runs(runs).sessions():
        try:
            record = directory.read_session()
        except StoreError:
            continue
        name, trial = str(record.get("experiment")), str(directory.trial)
        if isinstance(record.get("trial"), dict):
            trials.setdefault(name, VariedSettings()).add(trial, record["trial"])
            sessions[directory.id] = name, trial
    return {id: trials[name].label(trial) for id, (name, trial) in sessions.items()}
