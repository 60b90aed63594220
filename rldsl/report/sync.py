"""Copies the log points of sessions from disk to an experiment tracker. Training knows nothing about it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rldsl.report.sinks import OpenRun, RunInfo, Sink
from rldsl.store.errors import writing
from rldsl.store.files import replace_json
from rldsl.store.metrics import FRAME, MetricsReader, Row
from rldsl.store.session_dir import SessionDir
from rldsl.store.tensorboard import tag_of

SYNC = ".sync"
"""The folder in a run directory that says how far sessions have been copied."""
ENDED = ("done", "failed")

Progress = Callable[[SessionDir, int], None]
"""Called with a session and the number of its log points that were copied."""


class SessionCopy:
    """Copies one session, from the log point after the last that was copied."""

    def __init__(self, session: SessionDir, sink: Sink, mark: Path) -> None:
        self.session, self.sink, self.mark = session, sink, mark
        self._metrics = MetricsReader(session.metrics)
        self._run: OpenRun | None = None
        self._frame, self.ended = _read_mark(mark)

    def push(self) -> int:
        """Copies the new log points, and the end of the session; returns the number of log points."""
        if self.ended:
            return 0
        state = self.session.state()  # before the metrics: what ends after this is seen by the next call
        rows = [row for row in self._metrics.read_new() if int(row[FRAME] or 0) > self._frame]
        if rows:
            self._log(rows)
        self.ended = state in ENDED
        if self.ended or not self.sink.keeps_open:
            self.close(failed=state == "failed")
        if rows or self.ended:
            self._write_mark()
        return len(rows)

    def close(self, failed: bool = False) -> None:
        """Closes the run, if it is open."""
        if self._run is not None:
            self._run.finish(failed)
            self._run = None

    def _log(self, rows: Sequence[Row]) -> None:
        self._run = self._run or self.sink.open(run_info(self.session))
        for row in rows:
            self._frame = int(row[FRAME] or 0)
            self._run.log(self._frame, dict(_values(row)))

    def _write_mark(self) -> None:
        with writing(self.mark):
            self.mark.parent.mkdir(parents=True, exist_ok=True)
        replace_json(self.mark, {"frame": self._frame, "ended": self.ended})


def run_info(session: SessionDir) -> RunInfo:
    """What a tracker is told: the complete settings, and the experiment as the group of its runs."""
    record = session.read_session()
    seed = session.seed or 0
    return RunInfo(
        id=session.id,
        experiment=str(record.get("experiment", "?")),
        trial=str(session.trial),
        seed=seed,
        config={**(record.get("trial") or {}), "seed": seed},
        tags=(str(record.get("env", "?")), str(record.get("agent", "?"))),
    )


def mark_of(session: SessionDir, sink: str, project: str) -> Path:
    """The file that says how far a session has been copied to a project."""
    return session.path.parents[2] / SYNC / "copied" / sink / project / f"{session.id}.json"


def copy_sessions(copies: Sequence[SessionCopy], progress: Progress) -> bool:
    """Copies what is new in all sessions; returns whether every session has ended."""
    for copy in copies:
        if number := copy.push():
            progress(copy.session, number)
    return all(copy.ended for copy in copies)


def _values(row: Row) -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if name != FRAME and value is not None and not math.isnan(value):
            yield tag_of(name), value


def _read_mark(path: Path) -> tuple[int, bool]:
    try:
        mark = json.loads(path.read_bytes())
        return int(mark["frame"]), bool(mark["ended"])
    except (OSError, ValueError, KeyError, TypeError):  # never copied
        return -1, False
