"""The sessions of a run directory as the monitor sees them, updated by reading only what is new.

A `SessionIndex` must be used by one thread at a time. The snapshots that it returns are immutable.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.monitor.directory_scan import DirectoryScanner
from rldsl.report.varied_settings import VariedSettings
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.store.errors import StoreError
from rldsl.store.journal import Event, Garbage, JournalReader
from rldsl.store.metrics import last_row
from rldsl.store.processes import host_name
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

READ_SECONDS = 0.15
"""Time limit of one refresh for reading sessions for the first time, so that known sessions are shown soon."""
TIME_SHARE = 0.02
"""Share of the time spent on scanning folders and checking idle sessions: a slow filesystem is polled less often."""
SCAN_SECONDS = 1.0
"""Shortest interval between two scans of the run directory."""

JOB_ID_KEYS = ("job_id", "job", "run_name", "run", "id")
BACKEND_KEYS = ("backend", "place", "launcher")
"""Fields of the event `submitted` that name the backend, newest format first."""


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """The state of a session when it was last read."""

    path: str
    status: SessionState
    env: str
    agent: str
    trial: str
    backend: str  # `local`, a backend and its job id, or the name of another host
    job: str | None  # job id in the queue
    changed: float | None  # time of its newest log point or journal event
    left: float | None  # estimated seconds until it is done

    @property
    def is_search(self) -> bool:
        """Whether it belongs to a search: searches have a seed range of their own."""
        return self.status.seed >= SEARCH_SEEDS_FROM


class Changes(NamedTuple):
    """What a refresh found: sessions that are new or changed, the paths of deleted ones, and if searches changed."""

    updated: list[SessionSnapshot]
    removed: list[str]
    searches: bool = False

    def __bool__(self) -> bool:
        return bool(self.updated or self.removed or self.searches)


class SessionIndex:
    """All sessions of a run directory."""

    def __init__(self, runs: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs = runs
        self.clock = clock
        self.scanner = DirectoryScanner(runs)
        self.varied: dict[str, VariedSettings] = {}  # by experiment
        self.trackers: dict[str, SessionTracker] = {}
        self.unread: deque[str] = deque()
        self._running: set[str] = set()
        self._idle_queue: deque[str] = deque()
        self._next_scan = self._next_idle_check = -1.0

    @property
    def total(self) -> int:
        """The number of sessions, including those that have not been read yet."""
        return len(self.trackers) + len(self.unread)

    def refresh(self) -> Changes:
        """Reads what is new: the folders, all running sessions, some unread sessions and some idle ones."""
        removed = self._scan()
        updated = [*self._read(self._running), *self._read_unread(), *self._read_idle()]
        deleted = [path for path, tracker in list(self.trackers.items()) if tracker.deleted]
        for path in deleted:
            self._forget(path)
            self.scanner.forget(path)
        latest = {snapshot.path: snapshot for snapshot in updated if snapshot.path in self.trackers}
        return Changes(list(latest.values()), [*removed, *deleted])

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
            self.trackers[path] = SessionTracker(self.runs, path, self.varied)
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
                (self._running.add if snapshot.status.state == "running" else self._running.discard)(path)
        return snapshots


class SessionTracker:
    """Follows one session: its journal as far as it was read, its last log point, and the resulting snapshot."""

    def __init__(self, runs: Path, path: str, varied: dict[str, VariedSettings]) -> None:
        self.path = path
        self.directory = SessionDir(runs / path)
        self.snapshot: SessionSnapshot | None = None
        self.deleted = False
        self.backend = ""
        self.job: str | None = None
        self._journal_path, self._metrics_path = str(self.directory.journal.path), str(self.directory.metrics)
        self.recorded = self.directory.recorded()
        self._journal = JournalReader(self.directory.journal.path, self.recorded)
        self._journal_stamp: tuple[int, int] | None = None
        self._metrics_stamp: tuple[int, int] | None = None
        self._last_row: dict[str, Any] = {}
        self._read_record(varied)

    def _read_record(self, varied: dict[str, VariedSettings]) -> None:
        """Reads session.json, once; without it, the path of the directory tells environment, agent and trial."""
        try:
            record = self.directory.read_session()
        except StoreError:
            record = {}
        env, _, trial = self.path.rpartition("/")[0].partition("/")
        self.env, self.agent = str(record.get("env") or env), str(record.get("agent") or trial.rpartition("-")[0])
        self.trial = self.directory.trial or trial
        spec = record.get("trial")
        if isinstance(spec, dict):
            varied.setdefault(self.recorded.experiment, VariedSettings()).add(self.trial, spec)

    def needs_refresh(self) -> bool:
        """Whether its journal grew, or it has started and its process, perhaps on another host, may be alive again."""
        return self._journal.state.status == "started" or _stamp(self._journal_path) != self._journal_stamp

    def refresh(self) -> SessionSnapshot | None:
        """Reads what is new; None if nothing changed."""
        self._read_journal()
        self._read_metrics()
        try:
            state = self.directory.with_heartbeat(self._journal.state)
        except OSError:
            self.deleted = True
            return None
        self.deleted = self._journal_stamp is None and not self.directory.exists()
        snapshot = self._make_snapshot(state.with_log_point(self._last_row))
        if snapshot == self.snapshot:
            return None
        self.snapshot = snapshot
        return snapshot

    def _read_journal(self) -> None:
        stamp = _stamp(self._journal_path)
        if stamp != self._journal_stamp:
            self._journal_stamp = stamp
            with suppress(OSError):
                for event in self._journal.read_new():
                    self._apply(event)

    def _read_metrics(self) -> None:
        stamp = _stamp(self._metrics_path)
        if stamp != self._metrics_stamp:
            self._metrics_stamp = stamp
            with suppress(OSError, ValueError):
                self._last_row = last_row(self.directory.metrics) or {}

    def _apply(self, event: Event | Garbage) -> None:
        """Takes the backend and the job from an event."""
        if isinstance(event, Garbage):
            return
        if event["event"] == "submitted":
            self.job = _first_of(event, JOB_ID_KEYS)
            self.backend = " ".join(filter(None, [_first_of(event, BACKEND_KEYS) or "queue", self.job]))
        elif event["event"] == "started" and event.get("host") and self.job is None:
            self.backend = "local" if event["host"] == host_name() else str(event["host"])

    def _make_snapshot(self, status: SessionState) -> SessionSnapshot:
        event_time, metrics = self._journal.state.last_time, self._metrics_stamp
        times = [time for time in (event_time, metrics and metrics[1] / 1e9) if time]
        return SessionSnapshot(
            path=self.path,
            status=status,
            env=self.env,
            agent=self.agent,
            trial=self.trial,
            backend=self.backend,
            job=self.job,
            changed=max(times, default=None),
            left=_seconds_left(status),
        )


def _first_of(event: Event, keys: Iterable[str]) -> str | None:
    """The first of these fields that an event has."""
    return next((str(event[key]) for key in keys if event.get(key)), None)


def _seconds_left(status: SessionState) -> float | None:
    if status.state != "running" or not status.fps:
        return None
    return max(0, status.frames - status.frame) / status.fps


def _stamp(path: str) -> tuple[int, int] | None:
    """Size and modification time of a file; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 (called thousands of times a second)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
