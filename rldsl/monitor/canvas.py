"""Curves as braille: pure functions from lines and a window to cells of a terminal. Each cell has 2 x 4 dots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rldsl.monitor.curves import Line

DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bit of each dot of a braille character, by row and column."""
NOTHING = -1


@dataclass(frozen=True)
class Window:
    """The part of the plane that is shown."""

    x0: float
    x1: float
    y0: float
    y1: float
    log: bool = False

    def zoomed(self, factor: float, centre: float = 0.5) -> Window:
        """A narrower window (factor below 1) or a wider one, in x."""
        middle, half = self.x0 + (self.x1 - self.x0) * centre, (self.x1 - self.x0) * factor
        return replace(self, x0=middle - half * centre, x1=middle + half * (1 - centre))

    def moved(self, share: float) -> Window:
        """Moved along x by a share of its width."""
        by = (self.x1 - self.x0) * share
        return replace(self, x0=self.x0 + by, x1=self.x1 + by)

    def rows(self, y: np.ndarray, height: int) -> np.ndarray:
        """Rows of a raster of this height, from the top; nan stays nan."""
        low, high = (scaled(np.array([value]), self.log)[0] for value in (self.y0, self.y1))
        return (high - scaled(y, self.log)) / (high - low) * (height - 1)

    def values(self, share: Sequence[float]) -> list[float]:
        """The values at shares of the height, from the bottom."""
        low, high = (scaled(np.array([value]), self.log)[0] for value in (self.y0, self.y1))
        return [float(unscaled(low + (high - low) * one, self.log)) for one in share]


def scaled(y: np.ndarray, log: bool) -> np.ndarray:
    """Logarithmic in both directions from zero, so that negative returns have a place too."""
    return np.sign(y) * np.log10(1 + np.abs(y)) if log else y


def unscaled(y: float, log: bool) -> float:
    """The inverse of `scaled`."""
    return math.copysign(10 ** abs(y) - 1, y) if log else y


def whole_window(lines: Sequence[Line], target: float | None, log: bool) -> Window | None:
    """The window that shows all of it, the target included; None where there is nothing to show."""
    drawn = [line for line in lines if len(line.x)]
    if not drawn:
        return None
    lows = [np.min(line.y if line.low is None else line.low) for line in drawn]
    highs = [np.max(line.y if line.high is None else line.high) for line in drawn]
    marks = [] if target is None else [target]
    low, high = float(min([*lows, *marks])), float(max([*highs, *marks]))
    margin = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    x0, x1 = float(min(line.x[0] for line in drawn)), float(max(line.x[-1] for line in drawn))
    return Window(x0, x1 if x1 > x0 else x0 + 1, low - margin, high + margin, log)


@dataclass
class Raster:
    """Cells: the dots of each, the line whose colour they have, and the lines in whose bands it lies, a bit each."""

    dots: np.ndarray
    owner: np.ndarray
    band: np.ndarray

    @classmethod
    def empty(cls, width: int, height: int) -> Raster:
        shape = (height, width)
        return cls(np.zeros(shape, int), np.full(shape, NOTHING), np.zeros(shape, int))

    def text(self, row: int) -> str:
        """The characters of a row."""
        return "".join(chr(0x2800 + cell) if cell else " " for cell in self.dots[row].tolist())


def draw(lines: Sequence[Line], window: Window, width: int, height: int) -> Raster:
    """All lines on one raster; where two share a cell, the later has the colour."""
    raster = Raster.empty(width, height)
    for index, line in enumerate(lines):
        _shade(raster, index, line, window)
    for index, line in enumerate(lines):
        _trace(raster, index, line, window)
    return raster


def _columns(line: Line, values: np.ndarray, window: Window, count: int) -> np.ndarray:
    """The values at so many columns of the window; nan where the line is not."""
    at = np.linspace(window.x0, window.x1, count)
    if len(line.x) == 1:
        here = np.abs(at - line.x[0]) <= (window.x1 - window.x0) / count
        return np.where(here, values[0], np.nan)
    return np.interp(at, line.x, values, left=np.nan, right=np.nan)


def _shade(raster: Raster, index: int, line: Line, window: Window) -> None:
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


def _by_cell(dots: np.ndarray) -> np.ndarray:
    """The two columns of dots of each cell, and the one before them, with which the line is joined."""
    return np.stack([np.concatenate([[np.nan], dots[1:-1:2]]), dots[0::2], dots[1::2]])


def _trace(raster: Raster, index: int, line: Line, window: Window) -> None:
    """Dots column by column, each joined to the one before, so that steep curves have no holes."""
    if not len(line.x):
        return
    height, width = raster.dots.shape
    rows = window.rows(_columns(line, line.y, window, width * 2), height * 4)
    before = math.nan
    for column, row in enumerate(rows):
        if math.isnan(row):
            before = math.nan
            continue
        start = row if math.isnan(before) else before
        first, last = sorted((round(start), round(row)))
        for dot in range(max(0, first), min(height * 4 - 1, last) + 1):
            _dot(raster, index, column, dot)
        before = row


def _dot(raster: Raster, index: int, column: int, row: int) -> None:
    cell = row // 4, column // 2
    raster.dots[cell] |= DOTS[row % 4, column % 2]
    raster.owner[cell] = index


def target_row(target: float, window: Window, height: int) -> int | None:
    """The row of cells of the target line, if it is in sight."""
    row = round(float(window.rows(np.array([target]), height * 4)[0])) // 4
    return row if 0 <= row < height else None


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two bounds."""
    if not high > low or most < 1:
        return []
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step)
    return [round(number * step, 12) for number in range(first, math.floor(high / step) + 1)]


def y_ticks(window: Window, height: int) -> dict[int, float]:
    """Labels of the y axis by row."""
    most = max(2, height // 4)
    if window.log:
        shares = [index / most for index in range(most + 1)]
        values = window.values(shares)
    else:
        values = nice_ticks(window.y0, window.y1, most)
    rows = np.round(window.rows(np.array(values), height * 4)) // 4 if values else np.empty(0)
    return {int(row): value for row, value in zip(rows, values, strict=True) if 0 <= row < height}
