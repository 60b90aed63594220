"""Learning curves: parsed incrementally, kept as the lowest, mean and highest value of each bucket of log points."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rldsl.report.panel import Floats
from rldsl.store.metrics import FRAME, RENAMED
from rldsl.store.session_dir import SessionDir

MAX_BUCKETS = 4096
"""Buckets of a curve. Up to this many log points, each has a bucket of its own; then pairs of buckets are merged."""
CHUNK = 512 * 1024
"""Bytes parsed at once: the interpreter is free for the screen between two chunks."""
MAX_CURVES = 256
"""Curves that are kept in memory."""
NEWLINE, COMMA = 10, 44


class Points(NamedTuple):
    """A metric of a session: x, and the mean, the lowest and the highest value around it."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats

    @property
    def outline(self) -> tuple[Floats, Floats]:
        """A line through the lowest and the highest value of every bucket, so that no spike is lost."""
        if np.array_equal(self.low, self.high):
            return self.x, self.y
        rising = np.gradient(self.y) >= 0 if len(self.y) > 1 else np.ones(1, bool)
        first, second = np.where(rising, self.low, self.high), np.where(rising, self.high, self.low)
        return np.repeat(self.x, 2), np.stack([first, second], axis=1).ravel()


NO_POINTS = Points(*(np.empty(0) for _ in range(4)))


class Curve:
    """The log points of one session. One thread reads; `points` may be called from another."""

    def __init__(self, runs: Path, path: str) -> None:
        self.path = SessionDir(runs / path).metrics
        self.columns: list[str] = []
        self.problem = ""
        self.malformed = 0
        self.size = self.offset = 0
        self._inode = 0
        self._clear()

    def _clear(self) -> None:
        self.columns, self.malformed, self.offset, self.rows = [], 0, 0, 0
        self._stride = 1
        self._buckets = np.empty((3, 0, 0))  # lowest, mean, highest; bucket; column
        self._rest = np.empty((0, 0))  # log points that do not fill a bucket yet

    def read(self) -> bool:
        """Reads all new log points; returns whether there were any."""
        return any(list(self.read_chunks()))

    def read_chunks(self) -> Iterator[bool]:
        """Reads the new log points chunk by chunk, and yields after each whether there were any."""
        try:
            self._follow()
            while self.offset < self.size:
                data = self._read_lines()
                if not data:
                    return
                yield self._add(data)
        except FileNotFoundError:
            self.problem, self._inode = "", 0
        except OSError as error:
            self._inode = 0  # it is read from its beginning once that is possible
            self.problem = f"{self.path.name} cannot be read: {error.strerror or error}"

    def _follow(self) -> None:
        """Starts again if the file was replaced or truncated."""
        status = self.path.stat()
        if status.st_ino != self._inode or status.st_size < self.offset:
            self._clear()
            self.problem = ""
        self._inode, self.size = status.st_ino, status.st_size

    def _read_lines(self) -> bytes:
        """Complete lines from the present position on: a chunk of them, or more if a line is longer."""
        fd, size = os.open(self.path, os.O_RDONLY), CHUNK
        try:
            while True:
                data = os.pread(fd, size, self.offset)
                end = data.rfind(b"\n") + 1
                if end or len(data) < size:
                    return data[:end]
                size *= 4
        finally:
            os.close(fd)

    def _add(self, data: bytes) -> bool:
        self.offset += len(data)
        if not self.columns:
            header, _, data = data.partition(b"\n")
            names = header.decode("utf-8", "replace").split(",")
            self.columns = [RENAMED.get(name, name) for name in names]
            self.problem = "" if FRAME in self.columns else f"{self.path.name} has no column {FRAME}"
        if self.problem or not data:
            return False
        rows, malformed = parse_rows(data, len(self.columns))
        self.malformed += malformed
        self.rows += len(rows)
        self._fill(rows)
        return len(rows) > 0

    def _fill(self, rows: Floats) -> None:
        """Adds log points to the buckets; merges pairs of buckets if they become too many."""
        width = len(self.columns)
        rows = np.concatenate([self._rest.reshape(-1, width), rows])
        whole = len(rows) // self._stride
        self._rest = rows[whole * self._stride :]
        new = _reduced(rows[: whole * self._stride].reshape(whole, self._stride, width))
        buckets = np.concatenate([self._buckets.reshape(3, -1, width), new], axis=1)
        while buckets.shape[1] > MAX_BUCKETS:
            paired = buckets.shape[1] // 2 * 2  # the last one may have no partner
            pairs = _merged(buckets[:, :paired].reshape(3, -1, 2, width))
            buckets = np.concatenate([pairs, buckets[:, paired:]], axis=1)
            self._stride *= 2
        self._buckets = buckets

    def points(self, x: str, y: str) -> Points:
        """Two columns, where both are finite; empty if a column does not exist."""
        buckets, rest, columns = self._buckets, self._rest, self.columns
        if x not in columns or y not in columns or not buckets.size + rest.size:
            return NO_POINTS
        if len(rest):
            buckets = np.concatenate([buckets.reshape(3, -1, len(columns)), _reduced(rest[None])], axis=1)
        column = columns.index(y)
        at, low, mean, high = buckets[1, :, columns.index(x)], *buckets[:, :, column]
        known = np.isfinite(at) & np.isfinite(mean) & np.isfinite(low) & np.isfinite(high)
        return Points(at[known], mean[known], low[known], high[known])


def _reduced(groups: Floats) -> Floats:
    """Lowest, mean and highest of groups of log points [group, point, column]; infinite and missing ones left out."""
    if groups.shape[1] == 1:
        return np.broadcast_to(groups[:, 0], (3, groups.shape[0], groups.shape[2]))
    finite = np.isfinite(groups)
    known = finite.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        low = np.where(finite, groups, np.inf).min(axis=1)
        high = np.where(finite, groups, -np.inf).max(axis=1)
        mean = np.where(finite, groups / np.maximum(known, 1)[:, None], 0.0).sum(axis=1)
    none = known == 0
    return np.stack([np.where(none, np.nan, part) for part in (low, mean, high)])


def _merged(pairs: Floats) -> Floats:
    """Pairs of buckets [3, pair, 2, column] as one."""
    low, mean, high = pairs
    known = np.isfinite(mean)
    middle = np.where(known, mean / np.maximum(known.sum(axis=1), 1)[:, None], 0.0).sum(axis=1)
    middle = np.where(known.any(axis=1), middle, np.nan)
    return np.stack([np.fmin.reduce(low, axis=1), middle, np.fmax.reduce(high, axis=1)])


def parse_rows(data: bytes, width: int) -> tuple[Floats, int]:
    """The rows of complete lines, with nan for missing values, and the number of lines that are malformed."""
    letters = np.frombuffer(data, np.uint8)
    breaks, commas = np.flatnonzero(letters == NEWLINE), np.flatnonzero(letters == COMMA)
    cells = np.diff(np.searchsorted(commas, breaks), prepend=0) + 1
    if (cells == width).all():
        values = _parse_values(data)
        if values.size == len(breaks) * width:
            return values.reshape(-1, width), 0
    lines = data.decode("utf-8", "replace").split("\n")[:-1]
    rows = [row for line in lines if (row := _parse_line(line, width)) is not None]
    return np.array(rows, dtype=np.float64).reshape(-1, width), len(lines) - len(rows)


def _parse_values(data: bytes) -> Floats:
    """All values of a text with commas and line breaks; fewer than there are if one is malformed."""
    if b",," in data or b",\n" in data:
        data = data.replace(b",,", b",nan,").replace(b",,", b",nan,").replace(b",\n", b",nan\n")
    try:
        return np.fromstring(data.replace(b"\n", b","), sep=",")
    except (ValueError, DeprecationWarning):
        return np.empty(0)


def _parse_line(line: str, width: int) -> list[float] | None:
    cells = line.split(",")
    if len(cells) != width:
        return None
    try:
        return [float(cells[0]), *(float(cell) if cell else np.nan for cell in cells[1:])]
    except ValueError:
        return None


class CurveStore:
    """The curves that were read, one per session; the least recently used are dropped."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self._curves: OrderedDict[str, Curve] = OrderedDict()

    def get(self, path: str) -> Curve:
        """The curve of a session, read as far as it was."""
        curve = self._curves.setdefault(path, Curve(self.runs, path))
        self._curves.move_to_end(path)
        while len(self._curves) > MAX_CURVES:
            self._curves.popitem(last=False)
        return curve


def metrics_of(curves: Iterable[Curve]) -> list[str]:
    """All metrics that at least one of the sessions logs, in the order of their columns."""
    names = dict.fromkeys(name for curve in curves for name in curve.columns)
    return [name for name in names if name != FRAME]
