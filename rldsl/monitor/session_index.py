"""The sessions of a run directory as the monitor sees them, updated by reading only what is new.

A `SessionIndex` must be used by one thread at a time. The snapshots that it returns are immutable.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rldsl.monitor.directory_scan import DirectoryScanner
from rldsl.monitor.present_code import PresentCode
from rldsl.monitor.session_tracker import SessionTracker
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.varied_settings import VariedSettings

READ_SECONDS = 0.15
"""Time limit of one refresh for reading sessions for the first time, so that known sessions are shown soon."""
TIME_SHARE = 0.02
"""Share of the time spent on scanning folders and checking idle sessions: a slow filesystem is polled less often."""
SCAN_SECONDS = 1.0
"""Shortest interval between two scans of the run directory."""
MAX_AT_ONCE = 1000
"""Sessions that are shown at once; between two parts the screen reacts to keys."""


class Changes(NamedTuple):
    """What a refresh found: sessions that are new or changed, the paths of deleted ones, and if searches changed."""

    updated: list[SessionSnapshot]
    removed: list[str]
    searches: bool = False

    def __bool__(self) -> bool:
        return bool(self.updated or self.removed or self.searches)

    def parts(self) -> Iterator[Changes]:
        """The same in parts, each of which takes little time to show."""
        yield self._replace(updated=self.updated[:MAX_AT_ONCE])
        for start in range(MAX_AT_ONCE, len(self.updated), MAX_AT_ONCE):
            yield Changes(self.updated[start : start + MAX_AT_ONCE], [])


class SessionIndex:
    """All sessions of a run directory."""

    def __init__(
        self, runs: Path, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        """`clock` limits how often files are read; `now` is the time with which theirs is compared."""
        self.runs = runs
        self.clock, self.now = clock, now
        self.scanner = DirectoryScanner(runs)
        self.varied: dict[str, VariedSettings] = {}  # by experiment
        self.code = PresentCode(clock)
        self.trackers: dict[str, SessionTracker] = {}
        self.unread: deque[str] = deque()
        self._running: set[str] = set()
        self._idle_queue: deque[str] = deque()
        self._asked: deque[str] = deque()
        self._next_scan = self._next_idle_check = -1.0

    @property
    def total(self) -> int:
        """The number of sessions, including those that have not been read yet."""
        return len(self.trackers) + len(self.unread)

    def refresh(self) -> Changes:
        """Reads what is new: the folders, all running sessions, some unread sessions and some idle ones."""
        removed = self._scan()
        asked = [self._asked.popleft() for _ in range(len(self._asked))]
        asked += self._with_code(self.code.compare())
        updated = [
            *self._read(path for path in asked if path in self.trackers),
            *self._read(self._running),
            *self._read_unread(),
            *self._read_idle(),
        ]
        deleted = [path for path, tracker in list(self.trackers.items()) if tracker.deleted]
        for path in deleted:
            self._forget(path)
            self.scanner.forget(path)
        latest = {snapshot.path: snapshot for snapshot in updated if snapshot.path in self.trackers}
        return Changes(list(latest.values()), [*removed, *deleted])

    def ask_for(self, paths: Iterable[str]) -> None:
        """Makes the next refresh read these sessions; another thread may call this."""
        self._asked.extend(paths)

    def _with_code(self, codes: Collection[str]) -> list[str]:
        """The sessions whose last attempt ran one of these versions of the code."""
        if not codes:
            return []
        known = ((path, tracker.snapshot) for path, tracker in self.trackers.items())
        return [path for path, snapshot in known if snapshot is not None and snapshot.status.code in codes]

    def _scan(self) -> list[str]:
        start = self.clock()
        if start < self._next_scan:
            return []
        result = self.scanner.scan()
        elapsed = self.clock() - start
        self._next_scan = start + max(SCAN_SECONDS, elapsed / TIME_SHARE)
        self.unread.extend(result.added)
        for path in result.removed:
            self._forget(path)
        return result.removed

    def _forget(self, path: str) -> None:
        self.trackers.pop(path, None)
        self._running.discard(path)
        with suppress(ValueError):
            self.unread.remove(path)

    def _read_unread(self) -> list[SessionSnapshot]:
        deadline = self.clock() + READ_SECONDS
        snapshots = []
        while self.unread and self.clock() < deadline:
            path = self.unread.popleft()
            self.trackers[path] = SessionTracker(self.runs, path, self.varied, self.now, self.code)
            self._idle_queue.append(path)
            snapshots += self._read([path])
        return snapshots

    def _read_idle(self) -> list[SessionSnapshot]:
        """Checks whether journals of idle sessions grew: as many sessions as `TIME_SHARE` allows, in turn."""
        start = self.clock()
        if start < self._next_idle_check:
            return []
        changed, checked = [], 0
        while checked < len(self._idle_queue) and self.clock() - start < TIME_SHARE:
            path = self._idle_queue.popleft()
            if path not in self.trackers:
                continue
            self._idle_queue.append(path)
            checked += 1
            if path not in self._running and self.trackers[path].needs_refresh():
                changed.append(path)
        self._next_idle_check = start + (self.clock() - start) / TIME_SHARE
        return self._read(changed)

    def _read(self, paths: Iterable[str]) -> list[SessionSnapshot]:
        snapshots = []
        for path in list(paths):
            snapshot = self.trackers[path].refresh()
            if snapshot is not None:
                snapshots.append(snapshot)
                (self._running.add if snapshot.live else self._running.discard)(path)
        return snapshots
