"""Figures of a search as PNG, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rldsl.report.search_report import AxisColumn, SearchReport
from rldsl.report.words import amount, time_ticks
from rldsl.store.errors import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS_PER_INCH = 130
COLOURS = "viridis"
HIGHLIGHT = "#d55e00"
"""Vermillion of Okabe and Ito's palette, which everybody can tell from the colours of the values."""

BELOW = -0.12
"""Where a trial passes an axis that it does not have; the axis itself is from 0 to 1."""


def write_figures(report: SearchReport, folder: Path, name: str) -> list[Path]:
    """Writes the figures that the search has data for; returns their paths."""
    drawings: dict[str, tuple[Callable[[SearchReport, Any], None], bool, tuple[float, float]]] = {
        "parallel": (_parallel, report.best is not None, (max(6.0, 1.6 * len(report.columns) + 2), 4.2)),
        "rungs": (_rungs, len(report.rungs) > 1 and report.best is not None, (6.4, 4.0)),
        "importance": (_importance, report.importance is not None, (6.4, 0.4 * len(report.columns) + 1.4)),
        "pareto": (_pareto, bool(report.front), (6.4, 4.0)),
    }
    paths = []
    for kind, (draw, has_data, size) in drawings.items():
        path = folder / f"{name}-{kind}.png"
        if has_data:
            _save(report, draw, size, path)
            paths.append(path)
        else:
            path.unlink(missing_ok=True)  # of an earlier report
    return paths


def _save(report: SearchReport, draw: Callable[[SearchReport, Any], None], size: tuple[float, float], to: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    draw(report, axes)
    with writing(to):
        figure.savefig(to, dpi=DOTS_PER_INCH, metadata={"Software": None})


def _parallel(report: SearchReport, axes: Axes) -> None:
    """Parallel coordinates: a line for each trial with a value, coloured by it; the best one is highlighted."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    rows = [row for row in reversed(report.rows) if row.value is not None]
    values = [row.value for row in rows if row.value is not None]
    colours = ScalarMappable(Normalize(min(values), max(values)), COLOURS)
    rgba = colours.to_rgba(np.array(values))
    for row, colour in zip(rows, rgba, strict=True):
        heights = [_height(column, row.number) for column in report.columns]
        best = report.best is not None and row.number == report.best.number
        style: dict[str, Any] = {"color": HIGHLIGHT, "lw": 2.5} if best else {"color": colour}
        axes.plot(range(len(heights)), heights, marker="o", ms=3, **{"lw": 1.0, "alpha": 0.9, **style})
    axes.set_xticks(range(len(report.columns)), [column.label for column in report.columns])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlim(-0.2, len(report.columns) - 0.4)
    inactive = any(row.number not in column.positions for row in rows for column in report.columns)
    axes.set_ylim(BELOW - 0.05 if inactive else -0.05, 1.05)
    for x, column in enumerate(report.columns):
        axes.axvline(x, color="0.6", lw=0.8, zorder=0)
        for position, text in column.ticks.items():
            axes.annotate(
                text, (x, _scaled(column, position)), (4, 0), textcoords="offset points", fontsize=7, va="center"
            )
    assert axes.figure is not None
    axes.figure.colorbar(colours, ax=axes, label="value at the rung that the trial has reached")
    axes.set_title(f"{report.experiment.name}: {len(rows)} trials, the best in orange", fontsize=10)


def _height(column: AxisColumn, trial: int) -> float:
    """The position of a trial between 0 and 1; below the axis if it does not have this axis."""
    return _scaled(column, column.positions[trial]) if trial in column.positions else BELOW


def _scaled(column: AxisColumn, position: float) -> float:
    low, high = min(column.ticks), max(column.ticks)
    return (position - low) / (high - low) if high > low else 0.5


def _rungs(report: SearchReport, axes: Axes) -> None:
    """The value of each trial at the rungs that it has reached."""
    frames = [rung.frames for rung in report.rungs]
    for row in reversed(report.rows):
        curve = report.curves[row.number]
        best = report.best is not None and row.number == report.best.number
        style: dict[str, Any] = {"color": HIGHLIGHT, "lw": 2.5, "zorder": 3} if best else {"color": "0.55", "lw": 1.0}
        axes.plot([frames[rung] for rung in curve], list(curve.values()), marker="o", ms=3.5, **style)
    axes.set_xscale("log")
    axes.set_xticks(frames, [f"rung {rung.rung}\n{amount(rung.frames)}" for rung in report.rungs])
    axes.minorticks_off()
    axes.set_xlabel("frames")
    axes.set_ylabel("value")
    axes.set_title(f"{report.experiment.name}: values at the rungs, the best trial in orange", fontsize=10)


def _importance(report: SearchReport, axes: Axes) -> None:
    assert report.importance is not None
    names, shares = list(report.importance.axes), list(report.importance.axes.values())
    axes.barh(names[::-1], shares[::-1], color="0.45")
    axes.set_xlabel("increase of the squared error when permuted, as a share of the variance")
    axes.set_title(f"{report.experiment.name}: importance of the axes (a rough guide)", fontsize=10)


def _pareto(report: SearchReport, axes: Axes) -> None:
    """Value against training time."""
    known = [row for row in report.rows if row.value is not None and row.state != "failed"]
    axes.scatter([row.seconds for row in known], [row.value or 0.0 for row in known], s=14, color="0.55")
    front = report.front
    axes.plot([row.seconds for row in front], [row.value or 0.0 for row in front], color=HIGHLIGHT, marker="o", ms=4)
    for row in front:
        axes.annotate(str(row.number), (row.seconds, row.value or 0.0), (4, 4), textcoords="offset points", fontsize=7)
    longest = 1.05 * max(row.seconds for row in known) or 1.0
    ticks = time_ticks(0, longest)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlim(0, longest)
    axes.set_xlabel("training time of all seeds")
    axes.set_ylabel("value")
    axes.set_title(f"{report.experiment.name}: the Pareto front of value and time in orange", fontsize=10)
