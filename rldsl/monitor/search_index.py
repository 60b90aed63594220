"""The searches of a run directory as the monitor sees them, updated by reading only what is new."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rldsl.search.history import History
from rldsl.search.leaderboard import RankedTrial, leaderboard
from rldsl.search.schedule import schedule_of
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError
from rldsl.store.search_dir import SEARCHES, SearchDir, search_dirs


@dataclass(frozen=True)
class SearchSnapshot:
    """A search when it was last read."""

    name: str
    running: bool
    """Whether a driver holds it."""
    frames: tuple[int, ...]
    """Frames of its rungs."""
    rows: tuple[RankedTrial, ...]


class SearchIndex:
    """All searches of a run directory. Used by one thread at a time; snapshots are immutable."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.snapshots: dict[str, SearchSnapshot] = {}
        self._trackers: dict[str, SearchTracker] = {}
        self._mtime: int | None = None

    def refresh(self) -> bool:
        """Reads what is new; returns whether anything changed."""
        self._scan()
        snapshots = {}
        for name, tracker in self._trackers.items():
            if (snapshot := tracker.refresh()) is not None:
                snapshots[name] = snapshot
        changed = any(self.snapshots.get(name) is not one for name, one in snapshots.items())
        changed |= snapshots.keys() != self.snapshots.keys()
        self.snapshots = snapshots
        return changed

    def _scan(self) -> None:
        """Lists the folder of searches if it has changed."""
        try:
            mtime = (self.runs / SEARCHES).stat().st_mtime_ns
        except OSError:
            self._trackers, self._mtime = {}, None
            return
        if mtime == self._mtime and all(tracker.readable for tracker in self._trackers.values()):
            return
        found = {one.path.name: one for one in search_dirs(self.runs)}
        self._trackers = {name: self._trackers.get(name) or SearchTracker(one) for name, one in found.items()}
        self._mtime = mtime


class SearchTracker:
    """Follows one search: its journal as far as it was read, and the resulting snapshot."""

    def __init__(self, directory: SearchDir) -> None:
        self.directory = directory
        self.readable = True
        self._history = History()
        self._read = 0
        self._stamp: int | None = None
        self._snapshot: SearchSnapshot | None = None

    def refresh(self) -> SearchSnapshot | None:
        """The search as it is now: the same object if nothing changed; None if it cannot be read."""
        try:
            self._refresh()
            self.readable = True
        except (OSError, StoreError, SpecError, KeyError, IndexError):  # a damaged search must not end the monitor
            self.readable = False
        return self._snapshot

    def _refresh(self) -> None:
        events, running, before = self.directory.events(), self.directory.running, self._snapshot
        stamp = (self.directory.path / "search.json").stat().st_mtime_ns
        if before and len(events) == self._read and running == before.running and stamp == self._stamp:
            return
        if len(events) < self._read:
            self._history, self._read = History(), 0
        for event in events[self._read :]:
            self._history = self._history.after(event)
        self._read, self._stamp = len(events), stamp
        experiment = self.directory.experiment()
        rows = tuple(leaderboard(self._history, experiment))
        self._snapshot = SearchSnapshot(experiment.name, running, schedule_of(experiment).frames, rows)
