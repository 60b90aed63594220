"""Learning curves: read incrementally, thinned so that memory stays bounded, averaged over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from rldsl.report.panel import Floats, Line
from rldsl.store.metrics import MetricsReader, Row
from rldsl.store.session_dir import SessionDir

Points = tuple[Floats, Floats]
"""The x and the y values of a curve."""

MAX_POINTS = 2000
"""Points of a curve that are kept; a terminal has a few hundred columns."""
GRID_POINTS = 400
"""Points at which sessions are averaged."""


class Curve:
    """The log points of one session: every n-th one, and always the newest."""

    def __init__(self, runs: Path, path: str) -> None:
        self._reader = MetricsReader(SessionDir(runs / path).metrics)
        self._clear()

    def _clear(self) -> None:
        self._kept: list[list[float]] = []
        self._newest: list[float] | None = None
        self._stride, self._count = 1, 0

    @property
    def columns(self) -> list[str]:
        return self._reader.columns

    def read(self) -> bool:
        """Reads the new log points; returns whether there were any."""
        rows = self._reader.read_new()
        if self._reader.restarted:
            self._clear()
        for row in rows:
            self._add(row)
        return bool(rows)

    def _add(self, row: Row) -> None:
        self._newest = [np.nan if value is None else float(value) for value in row.values()]
        if self._count % self._stride == 0:
            self._kept.append(self._newest)
        self._count += 1
        if len(self._kept) > MAX_POINTS:
            self._kept, self._stride = self._kept[::2], self._stride * 2

    def points(self, x: str, y: str) -> Points:
        """Two columns, at the log points where both are finite; empty if a column does not exist."""
        if self._newest is None or x not in self.columns or y not in self.columns:
            return np.empty(0), np.empty(0)
        rows = self._kept if self._kept[-1] is self._newest else [*self._kept, self._newest]
        table = np.array(rows)
        pair = table[:, [self.columns.index(x), self.columns.index(y)]]
        pair = pair[np.isfinite(pair).all(axis=1)]
        return pair[:, 0], pair[:, 1]


def single(label: str, points: Points) -> Line:
    """The curve of one session."""
    return Line(label, *points)


def averaged(label: str, sessions: Sequence[Points]) -> Line:
    """Mean, lowest and highest over sessions; at each x, over the sessions that have reached it."""
    known = [(x, y) for x, y in sessions if len(x)]
    if len(known) < 2:
        return single(label, known[0] if known else (np.empty(0), np.empty(0)))
    grid = np.linspace(min(x[0] for x, _ in known), max(x[-1] for x, _ in known), GRID_POINTS)
    values = np.stack([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in known])
    reached = np.isfinite(values).any(axis=0)
    values, grid = values[:, reached], grid[reached]
    return Line(label, grid, np.nanmean(values, 0), np.nanmin(values, 0), np.nanmax(values, 0), seeds=len(known))


def metrics_of(curves: Iterable[Curve]) -> list[str]:
    """All metrics that at least one of the sessions logs, in the order of their columns."""
    names = dict.fromkeys(name for curve in curves for name in curve.columns)
    return [name for name in names if name != "frame"]
