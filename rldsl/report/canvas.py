"""Draws curves with braille characters: pure functions. A terminal cell has 2 x 4 dots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rldsl.report.panel import Floats, Line
from rldsl.report.words import amount

Ints = NDArray[np.int64]

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bit of each dot of a braille character, by row and column."""
LARGEST = 1e300
"""Larger values are drawn as this: the difference of two of them is still a number."""
NO_LINE = -1
"""The owner of a cell without dots."""


@dataclass(frozen=True)
class Window:
    """The range of x and y that is shown."""

    x0: float
    x1: float
    y0: float
    y1: float
    log: bool = False

    def zoomed(self, factor: float, centre: float = 0.5) -> Window:
        """Scales the x range by a factor around a centre, given as a share of the width."""
        middle, half = self.x0 + (self.x1 - self.x0) * centre, (self.x1 - self.x0) * factor
        return replace(self, x0=middle - half * centre, x1=middle + half * (1 - centre))

    def moved(self, share: float) -> Window:
        """Shifted along x by a share of its width."""
        shift = (self.x1 - self.x0) * share
        return replace(self, x0=self.x0 + shift, x1=self.x1 + shift)

    def rows(self, y: Floats, height: int) -> Floats:
        """The rows of y values in a raster of this height, counted from the top; nan stays nan."""
        low, high = self._scaled_range()
        return np.asarray((high - scaled(y, self.log)) / (high - low) * (height - 1))

    def values(self, shares: Sequence[float]) -> list[float]:
        """The y values at shares of the height, counted from the bottom."""
        low, high = self._scaled_range()
        return [float(unscaled(low + (high - low) * share, self.log)) for share in shares]

    def _scaled_range(self) -> tuple[float, float]:
        low, high = scaled(np.array([self.y0, self.y1]), self.log)
        return float(low), float(high)


def scaled(y: Floats, log: bool) -> Floats:
    """sign(y) * log10(1 + |y|) on a log axis, which is defined for negative returns too."""
    y = np.clip(y, -LARGEST, LARGEST)
    return np.sign(y) * np.log10(1 + np.abs(y)) if log else y


def unscaled(y: float, log: bool) -> float:
    """The inverse of `scaled`."""
    return math.copysign(10 ** abs(y) - 1, y) if log else y


def whole_window(lines: Sequence[Line], target: float | None, log: bool) -> Window | None:
    """The window that shows all lines and the target; None if there is nothing to show."""
    drawn = [line for line in lines if len(line.x)]
    if not drawn:
        return None
    lows = [np.min(line.y if line.low is None else line.low) for line in drawn]
    highs = [np.max(line.y if line.high is None else line.high) for line in drawn]
    targets = [] if target is None else [target]
    low, high = max(-LARGEST, float(min([*lows, *targets]))), min(LARGEST, float(max([*highs, *targets])))
    constant = high - low <= 1e-9 * max(abs(high), abs(low))  # rounding errors are not a curve
    margin = (abs(high) * 0.1 or 1.0) if constant else (high - low) * 0.04
    x0, x1 = float(min(line.x[0] for line in drawn)), float(max(line.x[-1] for line in drawn))
    return Window(x0, x1 if x1 > x0 else x0 + 1, low - margin, high + margin, log)


@dataclass
class Raster:
    """For each cell: its dots, the line that it is coloured by, and a bit for each line whose band covers it."""

    dots: Ints
    owner: Ints
    band: Ints

    @classmethod
    def empty(cls, width: int, height: int) -> Raster:
        shape = (height, width)
        return cls(np.zeros(shape, int), np.full(shape, NO_LINE), np.zeros(shape, int))

    def text(self, row: int) -> str:
        """The characters of a row."""
        return "".join(chr(0x2800 + cell) if cell else " " for cell in self.dots[row].tolist())


def draw(lines: Sequence[Line], window: Window, width: int, height: int) -> Raster:
    """Draws all lines on one raster; where two share a cell, the later one gives the colour."""
    raster = Raster.empty(width, height)
    for index, line in enumerate(lines):
        _shade(raster, index, line, window)
    for index, line in enumerate(lines):
        _trace(raster, index, line, window)
    return raster


def _columns(line: Line, values: Floats, window: Window, count: int) -> Floats:
    """Interpolates values at `count` columns of the window; nan outside of the line."""
    columns = np.linspace(window.x0, window.x1, count)
    if len(line.x) == 1:
        nearby = np.abs(columns - line.x[0]) <= (window.x1 - window.x0) / count
        return np.where(nearby, values[0], np.nan)
    return np.asarray(np.interp(columns, line.x, values, left=np.nan, right=np.nan))


def _shade(raster: Raster, index: int, line: Line, window: Window) -> None:
    """Marks the cells between the lowest and the highest seed of a line."""
    if line.low is None or line.high is None or not len(line.x):
        return
    height, width = raster.band.shape
    edges = (_columns(line, edge, window, width * 2) for edge in (line.high, line.low))
    tops, bottoms = (np.round(window.rows(edge, height * 4)) // 4 for edge in edges)
    tops, bottoms = np.fmin.reduce(_by_cell(tops)), np.fmax.reduce(_by_cell(bottoms))
    rows = np.arange(height)[:, None]
    with np.errstate(invalid="ignore"):
        inside = (rows >= tops) & (rows <= bottoms)
    raster.band[inside] |= 1 << index


def _by_cell(dots: Floats) -> Floats:
    """The two dot columns of each cell and the one to their left, to which the line is connected."""
    return np.stack([np.concatenate([[np.nan], dots[1:-1:2]]), dots[0::2], dots[1::2]])


def _trace(raster: Raster, index: int, line: Line, window: Window) -> None:
    """Draws dots column by column, each connected to the one before, so that steep curves have no gaps.

    A column also spans the lowest and the highest point of the line in it, so that no spike is lost.
    """
    if not len(line.x):
        return
    height, width = raster.dots.shape
    values = _columns(line, line.y, window, width * 2)
    low, high = _extremes(line, window, width * 2)
    dots = np.round(window.rows(values, height * 4))
    tops, bottoms = (np.round(window.rows(edge, height * 4)) for edge in (high, low))
    previous = np.concatenate([dots[:1], dots[:-1]])
    first = np.fmin.reduce([dots, np.where(np.isnan(dots), np.nan, previous), tops])
    last = np.fmax.reduce([dots, np.where(np.isnan(dots), np.nan, previous), bottoms])
    rows = np.arange(height * 4)[:, None]
    with np.errstate(invalid="ignore"):
        drawn = (rows >= first) & (rows <= last)
    cells = drawn.reshape(height, 4, width, 2)
    bits = (cells * DOTS[None, :, None, :]).sum(axis=(1, 3))
    raster.dots |= bits
    raster.owner[bits > 0] = index


def _extremes(line: Line, window: Window, count: int) -> tuple[Floats, Floats]:
    """The lowest and the highest point of a line in each of `count` columns of the window; nan in columns without."""
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    inside = (line.x >= window.x0) & (line.x <= window.x1)
    if inside.any():
        share = (line.x[inside] - window.x0) / (window.x1 - window.x0)
        columns, y = np.clip(np.round(share * (count - 1)), 0, count - 1).astype(int), line.y[inside]
        starts = np.flatnonzero(np.diff(columns, prepend=-1))
        low[columns[starts]], high[columns[starts]] = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    return low, high


def target_row(target: float, window: Window, height: int) -> int | None:
    """The row of the target line; None if it is outside of the window."""
    row = float(window.rows(np.array([target]), height * 4)[0])
    return round(row) // 4 if -0.5 <= row < height * 4 - 0.5 else None


def nice_ticks(low: float, high: float, limit: int) -> list[float]:
    """Round numbers between two bounds, about `limit` of them."""
    if not high > low or limit < 1 or not math.isfinite(high - low):
        return []
    rough = max((high - low) / limit, abs(high) * 1e-12, abs(low) * 1e-12)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step) + 1)]


def y_ticks(window: Window, height: int, rows_per_tick: int = 4) -> dict[int, float]:
    """The labels of the y axis, by row."""
    limit = max(2, height // rows_per_tick)
    if window.log:
        shares = [index / limit for index in range(limit + 1)]
        values = window.values(shares)
    else:
        values = nice_ticks(window.y0, window.y1, limit)
    rows = np.round(window.rows(np.array(values), height * 4)) // 4 if values else np.empty(0)
    return {int(row): value for row, value in zip(rows, values, strict=True) if 0 <= row < height}


def x_labels(window: Window, width: int, margin: int, format: Callable[[float], str]) -> str:
    """The line below the x axis of a plot that is `width` cells wide and begins after `margin` cells."""
    cells, before = [" "] * (margin + width), None
    for tick in nice_ticks(window.x0, window.x1, max(2, width // 14)):
        label = format(tick)
        if label == before:  # the format rounds
            continue
        before = label
        centre = margin + round((tick - window.x0) / (window.x1 - window.x0) * (width - 1))
        start = min(max(margin - 1, centre - len(label) // 2), margin + width - len(label))
        if all(cell == " " for cell in cells[max(0, start - 1) : start + len(label) + 1]):
            cells[start : start + len(label)] = label
    return "".join(cells)


def tick_label(number: float) -> str:
    """A number beside an axis, such as `12.5k`."""
    return "0" if number == 0 else amount(number) if abs(number) >= 0.01 else f"{number:.1e}".replace("e-0", "e-")
