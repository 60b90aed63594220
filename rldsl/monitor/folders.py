"""Which sessions a run directory holds: only folders that changed since the last look are listed again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rldsl.store import layout

Named: TypeAlias = Callable[[str], object]
"""Gives None for a name that is not one of ours."""


class Found(NamedTuple):
    """Sessions by relative path, since the last look."""

    new: list[str]
    gone: list[str]


class Folders:
    """A run directory as a set of sessions that is kept up to date.

    A folder is listed again if its time of change is another, and once more on the look after that: two changes may
    carry the same time.
    """

    def __init__(self, runs: Path) -> None:
        self.runs = str(runs)
        self.sessions: set[str] = set()
        self._times: dict[str, int] = {}
        self._unsettled: set[str] = set()
        self._children: dict[str, list[str]] = {}
        self._listings = 0  # of this look
        self._incomplete = False  # whether a seed's directory has no session.json yet

    def look(self) -> Found:
        """What came and went."""
        self._listings = 0
        seeds = self._seed_paths()
        if not self._listings and not self._incomplete:
            return Found([], [])
        before, self.sessions = self.sessions, {path for path in seeds if self._is_session(path)}
        self._incomplete = len(self.sessions) < len(seeds)
        return Found(sorted(self.sessions - before), sorted(before - self.sessions))

    def forget(self, path: str) -> None:
        """Looks at a session anew that was found to be gone."""
        self.sessions.discard(path)
        self._times.pop(path.rpartition("/")[0], None)

    def _seed_paths(self) -> list[str]:
        found: list[str] = []
        for env in self._list("", str):
            for trial in self._list(env, layout.trial_of):
                found += self._list(trial, layout.seed_of)
        return found

    def _is_session(self, path: str) -> bool:
        return path in self.sessions or os.path.exists(f"{self.runs}/{path}/{layout.SESSION}")  # noqa: PTH110

    def _list(self, folder: str, named: Named) -> list[str]:
        """The folders in a folder, by their relative paths."""
        try:
            changed = os.stat(f"{self.runs}/{folder}").st_mtime_ns  # noqa: PTH116 (thousands of them)
        except OSError:
            self._listings += self._times.pop(folder, None) is not None
            return []
        if changed != self._times.get(folder):
            self._times[folder] = changed
            self._unsettled.add(folder)
        elif folder in self._unsettled:
            self._unsettled.discard(folder)
        else:
            return self._children[folder]
        self._listings += 1
        self._children[folder] = self._listed(folder, named)
        return self._children[folder]

    def _listed(self, folder: str, named: Named) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{self.runs}/{folder}") as entries:
                names = [one.name for one in entries if one.is_dir() and not one.name.startswith(".")]
        except OSError:
            return []
        return [prefix + name for name in names if named(name) is not None]
