"""What the monitor knows of each session, kept up to date by reading only what is new.

The index is used by one thread at a time. What it hands out is immutable.
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

from rldsl.monitor.families import Family
from rldsl.monitor.folders import Folders
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.store.errors import StoreError
from rldsl.store.journal import Event, Garbage, JournalReader
from rldsl.store.metrics import last_row
from rldsl.store.processes import host_name
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

READING_SECONDS = 0.15
"""How long one look may read sessions that are new to it, so that what is known is shown soon."""
SHARE = 0.02
"""Seconds of each second that go to folders and to sessions at rest: a slow filesystem is asked less often."""
FOLDERS_EVERY = 1.0

JOB_KEYS = ("job_id", "job", "run_name", "run", "id")


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as it was last seen."""

    path: str
    status: SessionState
    env: str
    agent: str
    trial: str
    place: str
    job: str | None  # its number in a queue
    rung: int | None
    changed: float | None  # when it last wrote a log point or an event
    left: float | None  # seconds to go

    @property
    def searching(self) -> bool:
        """Whether it belongs to a search: their seeds are apart."""
        return self.status.seed >= SEARCH_SEEDS_FROM

    @property
    def progress(self) -> float:
        return min(1.0, self.status.frame / self.status.frames) if self.status.frames else 0.0


class Changes(NamedTuple):
    """What a look found: sessions that are new or other than before, and those that are gone."""

    seen: list[Seen]
    gone: list[str]

    def __bool__(self) -> bool:
        return bool(self.seen or self.gone)


class Index:
    """All sessions of a run directory."""

    def __init__(self, runs: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs = runs
        self.clock = clock
        self.folders = Folders(runs)
        self.families: dict[str, Family] = {}
        self.followed: dict[str, Followed] = {}
        self.unread: deque[str] = deque()
        self._running: set[str] = set()
        self._sweep: deque[str] = deque()
        self._folders_due = self._sweep_due = -1.0

    @property
    def total(self) -> int:
        """Sessions that are there, read or not."""
        return len(self.followed) + len(self.unread)

    def look(self) -> Changes:
        """Reads what is new: folders, sessions that run, some that were not read yet, a share of those at rest."""
        gone = self._look_at_folders()
        seen = [*self._look_at(self._running), *self._read_unread(), *self._look_at_rest()]
        lost = [path for path, one in list(self.followed.items()) if one.lost]
        for path in lost:
            self._forget(path)
            self.folders.forget(path)
        kept = {one.path: one for one in seen if one.path in self.followed}
        return Changes(list(kept.values()), [*gone, *lost])

    def _look_at_folders(self) -> list[str]:
        began = self.clock()
        if began < self._folders_due:
            return []
        found = self.folders.look()
        took = self.clock() - began
        self._folders_due = began + max(FOLDERS_EVERY, took / SHARE)
        self.unread.extend(found.new)
        for path in found.gone:
            self._forget(path)
        return found.gone

    def _forget(self, path: str) -> None:
        self.followed.pop(path, None)
        self._running.discard(path)
        with suppress(ValueError):
            self.unread.remove(path)

    def _read_unread(self) -> list[Seen]:
        until = self.clock() + READING_SECONDS
        found = []
        while self.unread and self.clock() < until:
            path = self.unread.popleft()
            self.followed[path] = Followed(self.runs, path, self.families)
            self._sweep.append(path)
            found += self._look_at([path])
        return found

    def _look_at_rest(self) -> list[Seen]:
        """Asks sessions at rest whether their journal grew: as many as fit into the share of the time."""
        began = self.clock()
        if began < self._sweep_due:
            return []
        awake, asked = [], 0
        while asked < len(self._sweep) and self.clock() - began < SHARE:
            path = self._sweep.popleft()
            if path not in self.followed:
                continue
            self._sweep.append(path)
            asked += 1
            if path not in self._running and self.followed[path].stirred():
                awake.append(path)
        self._sweep_due = began + (self.clock() - began) / SHARE
        return self._look_at(awake)

    def _look_at(self, paths: Iterable[str]) -> list[Seen]:
        found = []
        for path in list(paths):
            seen = self.followed[path].look()
            if seen is not None:
                found.append(seen)
                (self._running.add if seen.status.state == "running" else self._running.discard)(path)
        return found


class Followed:
    """One session: its journal as far as it was read, its last log point, and what both came to."""

    def __init__(self, runs: Path, path: str, families: dict[str, Family]) -> None:
        self.path = path
        self.directory = SessionDir(runs / path)
        self.seen: Seen | None = None
        self.lost = False
        self.place = ""
        self.job: str | None = None
        self.rung: int | None = None
        self._journal_path, self._metrics_path = str(self.directory.journal.path), str(self.directory.metrics)
        self.recorded = self.directory.recorded()
        self._journal = JournalReader(self.directory.journal.path, self.recorded)
        self._journal_stamp: tuple[int, int] | None = None
        self._metrics_stamp: tuple[int, int] | None = None
        self._row: dict[str, Any] = {}
        self._know(families)

    def _know(self, families: dict[str, Family]) -> None:
        try:
            record = self.directory.read_session()
        except StoreError:
            record = {}
        env, _, trial = self.path.rpartition("/")[0].partition("/")
        self.env, self.agent = str(record.get("env") or env), str(record.get("agent") or trial.rpartition("-")[0])
        self.trial = self.directory.trial or trial
        spec = record.get("trial")
        if isinstance(spec, dict):
            families.setdefault(self.recorded.experiment, Family()).add(self.trial, spec)

    def stirred(self) -> bool:
        """Whether it is worth a look: its journal grew, or it seemed dead and may be heard of from another host."""
        return self._journal.state.status == "started" or _stamp(self._journal_path) != self._journal_stamp

    def look(self) -> Seen | None:
        """Reads what is new; None if nothing changed."""
        self._read_journal()
        self._read_metrics()
        try:
            state = self.directory.with_heartbeat(self._journal.state)
        except OSError:
            self.lost = True
            return None
        self.lost = self._journal_stamp is None and not self.directory.exists()
        seen = self._seen(state.with_log_point(self._row))
        if seen == self.seen:
            return None
        self.seen = seen
        return seen

    def _read_journal(self) -> None:
        stamp = _stamp(self._journal_path)
        if stamp != self._journal_stamp:
            self._journal_stamp = stamp
            with suppress(OSError):
                for event in self._journal.read_new():
                    self._note(event)

    def _read_metrics(self) -> None:
        stamp = _stamp(self._metrics_path)
        if stamp != self._metrics_stamp:
            self._metrics_stamp = stamp
            with suppress(OSError, ValueError):
                self._row = last_row(self.directory.metrics) or {}

    def _note(self, event: Event | Garbage) -> None:
        """Where it runs, by the events that tell of it."""
        if isinstance(event, Garbage):
            return
        if event["event"] == "submitted":
            self.job = next((str(event[key]) for key in JOB_KEYS if event.get(key)), None)
            self.place = " ".join(filter(None, [str(event.get("place") or event.get("launcher") or "queue"), self.job]))
        elif event["event"] == "started" and event.get("host") and self.job is None:
            self.place = "local" if event["host"] == host_name() else str(event["host"])
        if isinstance(event.get("rung"), int):
            self.rung = event["rung"]

    def _seen(self, status: SessionState) -> Seen:
        story, metrics = self._journal.state, self._metrics_stamp
        times = [time for time in (story.last_time, metrics and metrics[1] / 1e9) if time]
        return Seen(
            path=self.path,
            status=status,
            env=self.env,
            agent=self.agent,
            trial=self.trial,
            place=self.place,
            job=self.job,
            rung=self.rung,
            changed=max(times, default=None),
            left=_left(status),
        )


def _left(status: SessionState) -> float | None:
    if status.state != "running" or not status.fps:
        return None
    return max(0, status.frames - status.frame) / status.fps


def _stamp(path: str) -> tuple[int, int] | None:
    """Size and time of change of a file; None if it is not there."""
    try:
        status = os.stat(path)  # noqa: PTH116 (thousands of times a second)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
