"""What a plot shows, independent of how it is drawn: panels of lines, as PNG, SVG, HTML or in the terminal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rldsl.report.words import amount, duration

if TYPE_CHECKING:
    from rldsl.report.learning_curve import JoinedCurve

Floats = NDArray[np.float64]

COLORS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
"""Okabe & Ito's palette, which people with any colour vision can tell apart; without yellow, unreadable on white."""
DASHES = ("solid", "dash", "dot", "dashdot")
"""Line styles after the colours have been used up, by the names that plotly gives them."""
ALGORITHMS = ("ppo", "sac", "dqn", "a2c", "crossq", "ddqn-per", "reinforce", "sarsa", "ppo-sil", "random")
"""Labels with a colour of their own, so that an algorithm looks the same in every panel."""
MOST_POINTS = 500
"""Points of a line that are drawn; a figure is fewer pixels wide."""


@dataclass(frozen=True)
class Line:
    """A curve, with the band around it if it stands for several seeds."""

    label: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    color: int = 0
    """Index of its colour and line style; see `colors_of`."""
    seeds: int = 1

    @classmethod
    def joined(cls, label: str, curve: JoinedCurve, color: int = 0) -> Line:
        """The mean over seeds, with a band from the lowest to the highest seed."""
        seeds = int(curve.n.max(initial=0))
        low, high = (curve.low, curve.high) if seeds > 1 else (None, None)
        return cls(label, curve.frame, curve.mean, low, high, color, seeds)

    @property
    def last(self) -> float | None:
        return float(self.y[-1]) if len(self.y) else None

    @property
    def css_color(self) -> str:
        return COLORS[self.color % len(COLORS)]

    @property
    def dash(self) -> str:
        return DASHES[self.color // len(COLORS) % len(DASHES)]

    def thinned(self, most: int = MOST_POINTS) -> Line:
        """The same line with at most this many points, evenly chosen, the first and the last among them."""
        if len(self.x) <= most:
            return self
        kept = np.unique(np.linspace(0, len(self.x) - 1, most).round().astype(int))
        low, high = (None if edge is None else edge[kept] for edge in (self.low, self.high))
        return replace(self, x=self.x[kept], y=self.y[kept], low=low, high=high)


@dataclass(frozen=True)
class Axis:
    """The meaning of an x value."""

    name: str
    """`frames`, `wall time` or `updates`."""

    def format(self, value: float) -> str:
        return duration(value) if self.name == WALL_TIME.name else amount(value)


FRAMES, WALL_TIME, UPDATES = Axis("frames"), Axis("wall time"), Axis("updates")


@dataclass(frozen=True)
class Panel:
    """One plot: the lines of an environment, and the score to be reached."""

    title: str
    lines: Sequence[Line]
    target: float | None = None
    metric: str = "episode_return"
    axis: Axis = FRAMES
    band: str = ""
    """What the bands show, such as `lowest to highest seed`; empty if no line has one."""
    smoothing: str = ""
    """How the curves were smoothed; empty if they were not."""
    note: str = ""
    """What a line is, such as `mean of 4 seeds`."""

    @property
    def remarks(self) -> list[str]:
        """What the legend says about all lines."""
        band = f"band: {self.band}" if self.band else ""
        return [remark for remark in (self.note, band, self.smoothing) if remark]


def colors_of(labels: Iterable[str]) -> dict[str, int]:
    """A colour index for each label: the same for the same label in any panel, if it ends with an algorithm's name.

    Other labels get the indices that are left, in the order in which they come.
    """
    unique = list(dict.fromkeys(labels))
    named = {label: ALGORITHMS.index(_algorithm(label)) for label in unique if _algorithm(label) in ALGORITHMS}
    if len(set(named.values())) < len(named):  # such as several trials of the same algorithm
        return {label: index for index, label in enumerate(unique)}
    free = iter(sorted(set(range(len(ALGORITHMS) + len(unique))) - set(named.values())))
    return {label: named[label] if label in named else next(free) for label in unique}


def _algorithm(label: str) -> str:
    return label.rpartition("/")[2]


def labelled(lines: Sequence[Line]) -> list[tuple[Line, bool]]:
    """Each line, and whether it is the first with its label: lines that share one have a single entry in a legend."""
    first = {line.label: index for index, line in reversed(list(enumerate(lines)))}
    return [(line, first[line.label] == index) for index, line in enumerate(lines)]


def data_digest(panels: Sequence[Panel]) -> str:
    """A hash of everything that the panels show: equal digests are equal figures, whatever fonts draw them."""
    text = json.dumps([_data(panel) for panel in panels], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _data(panel: Panel) -> dict[str, Any]:
    lines = [
        {
            "label": line.label,
            "color": line.color,
            **{name: _rounded(getattr(line, name)) for name in ("x", "y", "low", "high")},
        }
        for line in panel.lines
    ]
    named = {"title": panel.title, "metric": panel.metric, "x": panel.axis.name, "band": panel.band, "note": panel.note}
    smoothing = {"smoothing": panel.smoothing} if panel.smoothing else {}
    return {**named, **smoothing, "target": panel.target, "lines": lines}


def _rounded(values: Floats | None) -> list[str] | None:
    """Numbers as far as a reader can see them, so that the last bit of a sum does not matter."""
    return None if values is None else [f"{value:.6g}" for value in values]
