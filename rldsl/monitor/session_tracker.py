"""Follows one session: its journal as far as it was read, its last log point, and the resulting snapshot."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rldsl.monitor.present_code import PresentCode
from rldsl.monitor.snapshot import SessionSnapshot, condition_of, is_current
from rldsl.report.varied_settings import VariedSettings
from rldsl.store.errors import StoreError
from rldsl.store.journal import Event, Garbage, JournalReader
from rldsl.store.metrics import last_row
from rldsl.store.notes import NOTES, Notes, read_notes
from rldsl.store.processes import host_name
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

JOB_ID_KEYS = ("job_id", "job", "run_name", "run", "id")
BACKEND_KEYS = ("backend", "place", "launcher")
"""Fields of the event `submitted` that name the backend, newest format first."""
NOT_FACTS = frozenset({"time", "event", "frame", "seconds", "pid", "reason", "start_time", "submission"})
"""Fields of events that the monitor shows otherwise."""

Stamp = tuple[int, int]


class SessionTracker:
    """The files of a session, read only if their size or time has changed."""

    def __init__(
        self,
        runs: Path,
        path: str,
        varied: dict[str, VariedSettings],
        now: Callable[[], float] = time.time,
        code: PresentCode | None = None,
    ) -> None:
        self.path = path
        self.directory = SessionDir(runs / path)
        self.now, self.code = now, code or PresentCode()
        self.snapshot: SessionSnapshot | None = None
        self.deleted = False
        self.backend = ""
        self.job: str | None = None
        self.facts: dict[str, Any] = {}
        self.problem = ""
        self._journal_path, self._metrics_path = str(self.directory.journal.path), str(self.directory.metrics)
        self.recorded = self.directory.recorded()
        self._journal = JournalReader(self.directory.journal.path, self.recorded)
        self._journal_stamp: Stamp | None = None
        self._metrics_stamp: Stamp | None = None
        self._last_row: dict[str, Any] = {}
        self._notes_path = str(self.directory.path / NOTES)
        self._notes_stamp: Stamp | None = None
        self._notes = Notes()
        self._read_record(varied)

    def _read_record(self, varied: dict[str, VariedSettings]) -> None:
        """Reads session.json, once; without it, the path of the directory tells environment, agent and trial."""
        try:
            record = self.directory.read_session()
        except StoreError as error:
            record, self.problem = {}, str(error)
        env, _, trial = self.path.rpartition("/")[0].partition("/")
        self.env, self.agent = str(record.get("env") or env), str(record.get("agent") or trial.rpartition("-")[0])
        self.trial = self.directory.trial or trial
        spec = record.get("trial")
        self.log_every = _log_every(spec, self.recorded.frames)
        if isinstance(spec, dict):
            varied.setdefault(self.recorded.experiment, VariedSettings()).add(self.trial, spec)

    def needs_refresh(self) -> bool:
        """Whether a file grew, or it has started and its process, perhaps on another host, may be alive again."""
        if self._journal.state.status == "started" or stamp(self._journal_path) != self._journal_stamp:
            return True
        return stamp(self._notes_path) != self._notes_stamp

    def refresh(self) -> SessionSnapshot | None:
        """Reads what is new; None if nothing changed."""
        self._read_journal()
        self._read_metrics()
        self._read_notes()
        try:
            state = self.directory.with_heartbeat(self._journal.state)
        except OSError:
            self.deleted = True
            return None
        self.deleted = self._journal_stamp is None and not self.directory.exists()
        other_code = state.state != "running" and self.code.is_other(state.code, self.directory)
        state = replace(state, tags=self._notes.tags, notes=self._notes.text, other_code=other_code)
        snapshot = self._make_snapshot(state.with_log_point(self._last_row))
        if snapshot == self.snapshot:
            return None
        self.snapshot = snapshot
        return snapshot

    def _read_journal(self) -> None:
        now = stamp(self._journal_path)
        if now != self._journal_stamp:
            self._journal_stamp = now
            with suppress(OSError):
                for event in self._journal.read_new():
                    self._apply(event)

    def _read_metrics(self) -> None:
        now = stamp(self._metrics_path)
        if now != self._metrics_stamp:
            self._metrics_stamp = now
            with suppress(OSError, ValueError):
                self._last_row = last_row(self.directory.metrics) or {}

    def _read_notes(self) -> None:
        now = stamp(self._notes_path)
        if now != self._notes_stamp:
            self._notes_stamp = now
            self._notes = read_notes(self.directory.path)

    def _apply(self, event: Event | Garbage) -> None:
        """Takes the backend, the job and other facts from an event."""
        if isinstance(event, Garbage):
            return
        if event["event"] == "submitted":
            self.job = _first_of(event, JOB_ID_KEYS)
            self.backend = " ".join(filter(None, [_first_of(event, BACKEND_KEYS) or "queue", self.job]))
        elif event["event"] == "started" and event.get("host") and self.job is None:
            self.backend = "local" if event["host"] == host_name() else str(event["host"])
        new = {name: value for name, value in event.items() if name not in NOT_FACTS and _is_scalar(value)}
        if new:
            self.facts = self.facts | new

    def _make_snapshot(self, status: SessionState) -> SessionSnapshot:
        metrics_time = self._metrics_stamp[1] / 1e9 if self._metrics_stamp else None
        changed = max(filter(None, (self._journal.state.last_time, metrics_time)), default=None)
        interval = self.log_every / status.fps if status.fps else 0.0
        condition = condition_of(status, changed, interval, self.now())
        training = condition == "running" and is_current(status, metrics_time)
        fps = status.fps if training or condition == "done" else None
        return SessionSnapshot(
            path=self.path,
            status=status,
            env=self.env,
            agent=self.agent,
            trial=self.trial,
            backend=self.backend,
            job=self.job,
            changed=changed,
            left=max(0, status.frames - status.frame) / fps if training and fps else None,
            condition=condition,
            since=status.compiling_since or self._journal.state.last_time,
            fps=fps,
            row=self._last_row,
            facts=self.facts,
            problem=self.problem,
        )


def stamp(path: str) -> Stamp | None:
    """Size and modification time of a file; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 (called thousands of times a second)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _first_of(event: Event, keys: Iterable[str]) -> str | None:
    """The first of these fields that an event has."""
    return next((str(event[key]) for key in keys if event.get(key)), None)


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and (not isinstance(value, str) or len(value) <= 80)


def _log_every(spec: object, frames: int) -> int:
    """Frames between two log points, by the spec of a trial."""
    budget = spec.get("budget") if isinstance(spec, dict) else None
    every = budget.get("log_every") if isinstance(budget, dict) else None
    return every if isinstance(every, int) and every > 0 else max(1, frames // 400)
