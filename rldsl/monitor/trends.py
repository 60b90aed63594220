"""A metric of a session at a few log points spread over its file, for sparklines: cheap for files of any size."""

from __future__ import annotations

import math
import os
from pathlib import Path

from rldsl.monitor.session_tracker import Stamp, stamp
from rldsl.store.metrics import RENAMED
from rldsl.store.session_dir import SessionDir

SAMPLES = 16
BLOCK = 1024
BLOCKS = "▁▂▃▄▅▆▇█"
MAX_KEPT = 5000


def sample_metric(path: Path, metric: str, samples: int = SAMPLES) -> list[float]:
    """The metric at log points at regular distances, and at the last one; unreadable and infinite ones left out."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return []
    try:
        size = os.fstat(fd).st_size
        header = os.pread(fd, BLOCK, 0).partition(b"\n")[0].decode("utf-8", "replace")
        columns = [RENAMED.get(name, name) for name in header.split(",")]
        if metric not in columns:
            return []
        first, column, width = len(header.encode()) + 1, columns.index(metric), len(columns)
        step = max(1, (size - first) // samples)
        found: dict[int, float] = {}
        for start, last in [*((start, False) for start in range(first, size, step)), (max(first, size - BLOCK), True)]:
            if (point := _row_at(os.pread(fd, BLOCK, start), start == first, last, column, width)) is not None:
                found[point[0]] = point[1]
    except OSError:
        return []
    finally:
        os.close(fd)
    return [found[frame] for frame in sorted(found)]


def _row_at(data: bytes, whole: bool, last: bool, column: int, width: int) -> tuple[int, float] | None:
    """Frame and value of the first, or the last, complete line of a block."""
    lines = data.split(b"\n")[0 if whole else 1 : -1]
    for line in reversed(lines) if last else lines:
        cells = line.split(b",")
        try:
            if len(cells) == width and math.isfinite(value := float(cells[column])):
                return int(cells[0]), value
        except ValueError:
            continue
    return None


def sparkline(values: list[float], width: int) -> str:
    """A line of blocks, from the lowest to the highest value."""
    if not values:
        return ""
    shown = min(width, len(values))
    values = [values[round(index * (len(values) - 1) / max(1, shown - 1))] for index in range(shown)]
    low, high = min(values), max(values)
    top = len(BLOCKS) - 1
    half = high / 2 - low / 2  # of huge values, the difference may not be a number
    return "".join(BLOCKS[round((value / 2 - low / 2) / half * top) if half > 0 else 0] for value in values)


class Trends:
    """Samples that were taken. `get` notes which are missing; `update` takes them, in a thread."""

    def __init__(self, runs: Path, metric: str = "episode_return") -> None:
        self.runs, self.metric = runs, metric
        self.wanted: dict[str, float | None] = {}
        self._known: dict[str, tuple[float | None, Stamp | None, list[float]]] = {}

    def get(self, path: str, changed: float | None) -> list[float]:
        """The samples of a session; they are wanted again if it has changed since."""
        known = self._known.get(path)
        if known is None or known[0] != changed:
            self.wanted[path] = changed
        return known[2] if known else []

    def update(self) -> bool:
        """Takes the samples that are wanted; returns whether any are new."""
        wanted, self.wanted = self.wanted, {}
        new = False
        for path, changed in wanted.items():
            metrics = SessionDir(self.runs / path).metrics
            now, known = stamp(str(metrics)), self._known.get(path)
            same = known is not None and known[1] == now
            values = known[2] if known is not None and same else sample_metric(metrics, self.metric)
            self._known[path] = changed, now, values
            new |= not same
        while len(self._known) > MAX_KEPT:
            self._known.pop(next(iter(self._known)))
        return new
