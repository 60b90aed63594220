"""Finds the sessions of a run directory; only folders whose modification time changed are listed again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rldsl.store import layout

ParseName: TypeAlias = Callable[[str], object]
"""Returns None for the name of a folder that does not belong to the layout of a run directory."""


class ScanResult(NamedTuple):
    """Sessions that were added and removed since the last scan, by their paths below the run directory."""

    added: list[str]
    removed: list[str]


class DirectoryScanner:
    """The set of sessions in a run directory, kept up to date.

    A folder is listed again if its modification time changed, and once more on the scan after that: on a filesystem
    with a coarse clock, two changes may carry the same time.
    """

    def __init__(self, runs: Path) -> None:
        self.runs = str(runs)
        self.sessions: set[str] = set()
        self._mtimes: dict[str, int] = {}
        self._list_once_more: set[str] = set()
        self._children: dict[str, list[str]] = {}
        self._listings = 0  # folders listed in the current scan
        self._incomplete = False  # whether the directory of a seed has no session.json yet

    def scan(self) -> ScanResult:
        """Returns the sessions that were added and removed since the last scan."""
        self._listings = 0
        candidates = self._seed_directories()
        if not self._listings and not self._incomplete:
            return ScanResult([], [])
        before, self.sessions = self.sessions, {path for path in candidates if self._is_session(path)}
        self._incomplete = len(self.sessions) < len(candidates)
        return ScanResult(sorted(self.sessions - before), sorted(before - self.sessions))

    def forget(self, path: str) -> None:
        """Drops a session that was found to be deleted; the next scan checks its folder again."""
        self.sessions.discard(path)
        self._mtimes.pop(path.rpartition("/")[0], None)

    def _seed_directories(self) -> list[str]:
        directories: list[str] = []
        for env in self._list(""):
            for trial in self._list(env, layout.trial_of):
                directories += self._list(trial, layout.seed_of)
        return directories

    def _is_session(self, path: str) -> bool:
        return path in self.sessions or os.path.exists(f"{self.runs}/{path}/{layout.SESSION}")  # noqa: PTH110

    def _list(self, folder: str, parse_name: ParseName = str) -> list[str]:
        """The subfolders of a folder, as paths below the run directory; from the cache if nothing changed."""
        try:
            mtime = os.stat(f"{self.runs}/{folder}").st_mtime_ns  # noqa: PTH116 (called thousands of times)
        except OSError:
            self._listings += self._mtimes.pop(folder, None) is not None
            return []
        if mtime != self._mtimes.get(folder):
            self._mtimes[folder] = mtime
            self._list_once_more.add(folder)
        elif folder in self._list_once_more:
            self._list_once_more.discard(folder)
        else:
            return self._children[folder]
        self._listings += 1
        self._children[folder] = self._list_uncached(folder, parse_name)
        return self._children[folder]

    def _list_uncached(self, folder: str, parse_name: ParseName) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{self.runs}/{folder}") as entries:
                names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        except OSError:
            return []
        return [prefix + name for name in names if parse_name(name) is not None]
