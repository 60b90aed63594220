"""Reads curves and makes their lines in one thread: no file is ever read by two threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rldsl.monitor.chart_lines import Group, View, make_line
from rldsl.monitor.curves import Curve, CurveStore, metrics_of
from rldsl.monitor.session_tracker import Stamp, stamp
from rldsl.monitor.widgets.chart import Marker
from rldsl.report.panel import Line
from rldsl.store.journal import Garbage, read_journal
from rldsl.store.session_dir import SessionDir

PROGRESS_SECONDS = 0.2
CHECKPOINT, RESUME = "▴", "↻"


@dataclass(frozen=True)
class Job:
    """What to read and to draw."""

    groups: Sequence[Group]
    metrics: Callable[[list[str]], list[str]]
    """Of all metrics, those that are drawn."""
    view: View


@dataclass(frozen=True)
class Result:
    """The lines of each metric, and why sessions are not among them."""

    lines: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    names: Sequence[str] = ()
    """All metrics of these sessions."""
    markers: Sequence[Marker] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    """By the path of a session."""
    empty: Sequence[str] = ()
    """Paths of sessions without a log point."""
    view: View = field(default_factory=View)
    """How the lines were made."""


class CurveWorker:
    """The only reader of a store's curves. `run` is called by one thread at a time."""

    def __init__(self, runs: Path) -> None:
        self.store = CurveStore(runs)
        self.runs = runs
        self._lock = threading.Lock()
        self._markers: dict[str, tuple[Stamp | None, list[tuple[int, str]]]] = {}

    def run(self, job: Job, progress: Callable[[float], None] = lambda share: None) -> Result:
        """Reads what is new and makes the lines."""
        with self._lock:
            curves = {path: self.store.get(path) for group in job.groups for path in group.paths}
            self._read(curves, progress)
            names = metrics_of(curves.values())
            lines = {name: self._lines(job, name, curves) for name in job.metrics(names)}
            problems = {path: text for path, curve in curves.items() if (text := _problem(curve))}
            empty = [path for path, curve in curves.items() if not curve.rows and path not in problems]
            return Result(lines, names, self._all_markers(job), problems, empty, job.view)

    def _read(self, curves: Mapping[str, Curve], progress: Callable[[float], None]) -> None:
        before = {path: curve.offset for path, curve in curves.items()}
        total = sum(_size(curve) - before[path] for path, curve in curves.items())
        reported = time.monotonic()
        for curve in curves.values():
            for _ in curve.read_chunks():
                if time.monotonic() - reported > PROGRESS_SECONDS and total > 0:
                    reported = time.monotonic()
                    done = sum(max(0, one.offset - before[path]) for path, one in curves.items())
                    progress(min(1.0, done / total))

    @staticmethod
    def _lines(job: Job, metric: str, curves: Mapping[str, Curve]) -> list[Line]:
        return [
            make_line(group, [curves[path].points(job.view.axis, metric) for path in group.paths], job.view)
            for group in job.groups
        ]

    def _all_markers(self, job: Job) -> list[Marker]:
        """Checkpoints and resumes of the sessions, on an axis of frames."""
        if job.view.axis != "frame" or job.view.log_x:
            return []
        return [
            Marker(frame, symbol, group.colour)
            for group in job.groups
            for path in group.paths
            for frame, symbol in self._markers_of(path)
        ]

    def _markers_of(self, path: str) -> list[tuple[int, str]]:
        journal = SessionDir(self.runs / path).journal.path
        now = stamp(str(journal))
        if path not in self._markers or self._markers[path][0] != now:
            try:
                self._markers[path] = now, _read_markers(journal)
            except OSError:
                self._markers[path] = now, []
        return self._markers[path][1]


def _read_markers(journal: Path) -> list[tuple[int, str]]:
    found = []
    for event in read_journal(journal):
        frame = None if isinstance(event, Garbage) else event.get("frame")
        if isinstance(event, Garbage) or not isinstance(frame, int):
            continue
        if event["event"] == "checkpoint":
            found.append((frame, CHECKPOINT))
        elif event["event"] == "started" and frame > 0:
            found.append((frame, RESUME))
    return found


def _problem(curve: Curve) -> str:
    if curve.problem:
        return curve.problem
    return f"{curve.malformed:,} malformed lines left out" if curve.malformed else ""


def _size(curve: Curve) -> int:
    try:
        return curve.path.stat().st_size
    except OSError:
        return 0
