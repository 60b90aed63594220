"""The lines of a chart: sessions grouped by trial, averaged over seeds, smoothed, with the x axis that was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from rldsl.monitor.curves import Points
from rldsl.report.panel import Floats, Line

MAX_GRID = 32_768
"""Points at which sessions are averaged."""


@dataclass(frozen=True)
class Group:
    """The sessions behind one line."""

    label: str
    paths: tuple[str, ...]
    colour: int = 0
    pinned: bool = False


@dataclass(frozen=True)
class View:
    """How curves are shown."""

    axis: str = "frame"
    smoothing: float = 0.0
    """Weight of the past in the exponential moving average."""
    log_x: bool = False


def make_line(group: Group, sessions: Sequence[Points], view: View) -> Line:
    """One line for a group: a single session as it is, several as their mean with a band."""
    sessions = [one._replace(x=_log(one.x)) if view.log_x else one for one in sessions if len(one.x)]
    line = averaged(group.label, sessions) if len(sessions) != 1 else single(group.label, sessions[0], view.smoothing)
    return replace(smoothed(line, view.smoothing), color=group.colour)


def _log(x: Floats) -> Floats:
    return np.log10(np.maximum(x, 1.0))


def single(label: str, points: Points, smoothing: float = 0.0) -> Line:
    """The curve of one session; through the extremes of its buckets unless it is smoothed."""
    return Line(label, *((points.x, points.y) if smoothing else points.outline))


def averaged(label: str, sessions: Sequence[Points]) -> Line:
    """Mean, lowest and highest over sessions; at each x, over the sessions that have reached it."""
    known = [one for one in sessions if len(one.x)]
    if len(known) < 2:
        return single(label, known[0]) if known else Line(label, np.empty(0), np.empty(0))
    grid = reduce(np.union1d, [one.x for one in known])
    if len(grid) > MAX_GRID:
        grid = grid[np.linspace(0, len(grid) - 1, MAX_GRID).astype(int)]
    means, lows, highs = (_at(grid, known, part) for part in ("y", "low", "high"))
    return Line(label, grid, np.nanmean(means, 0), np.nanmin(lows, 0), np.nanmax(highs, 0), seeds=len(known))


def _at(grid: Floats, sessions: Sequence[Points], part: str) -> Floats:
    return np.stack([np.interp(grid, one.x, getattr(one, part), left=np.nan, right=np.nan) for one in sessions])


def smoothed(line: Line, weight: float) -> Line:
    """The exponential moving average of a line and its band, without a bias towards zero at its beginning."""
    if not weight or len(line.x) < 2:
        return line
    low, high = (None if edge is None else ema(edge, weight) for edge in (line.low, line.high))
    return replace(line, y=ema(line.y, weight), low=low, high=high)


def ema(values: Floats, weight: float) -> Floats:
    """y[t] = (w y[t-1] + (1-w) x[t]), divided by 1 - w^(t+1)."""
    from scipy.signal import lfilter

    average = lfilter([1.0 - weight], [1.0, -weight], values)
    return np.asarray(average / (1.0 - weight ** np.arange(1, len(values) + 1)))


def value_at(line: Line, x: float) -> float | None:
    """The value of a line at x; None outside of it."""
    if not len(line.x) or not line.x[0] <= x <= line.x[-1]:
        return None
    return float(np.interp(x, line.x, line.y))


def colour_of(label: str, known: dict[str, int]) -> int:
    """The colour of a label: the same as long as the monitor's settings are kept, others do not change it."""
    return known.setdefault(label, len(known))


def distinct(groups: Sequence[Group], colours: int) -> list[Group]:
    """Groups on one page whose colours would be the same get the next free one."""
    used: set[int] = set()
    result = []
    for group in groups:
        colour = group.colour
        while colour % colours in used and len(used) < colours:
            colour += 1
        used.add(colour % colours)
        result.append(replace(group, colour=colour))
    return result
