"""The chart that is shown as PNG, SVG or CSV."""

from __future__ import annotations

import csv
from io import StringIO

import numpy as np

from rldsl.monitor.chart_lines import View
from rldsl.monitor.widgets.chart import ChartData, cut
from rldsl.report.panel import FRAMES, WALL_TIME, Line, Panel

EXPORTS = {"p": "png", "s": "svg", "c": "csv"}


def chart_file(
    format: str, metric: str, data: ChartData, x_range: tuple[float, float] | None, view: View
) -> tuple[str, bytes]:
    """The name of the file and its content."""
    lines = [cut(line, *x_range) if x_range else line for line in data.lines]
    lines = [_linear(line) if view.log_x else line for line in lines if len(line.x)]
    if format == "csv":
        return f"{metric}.csv", _csv(lines, metric, view).encode()
    from rldsl.report.figures import figure_bytes

    smoothing = f"EMA {view.smoothing:g}" if view.smoothing else ""
    band = "lowest to highest seed" if any(line.low is not None for line in lines) else ""
    axis = WALL_TIME if view.axis == "seconds" else FRAMES
    panel = Panel(metric, lines, data.target, metric, axis, band, smoothing)
    return f"{metric}.{format}", figure_bytes([panel], format)


def _linear(line: Line) -> Line:
    from dataclasses import replace

    return replace(line, x=10**line.x)


def _csv(lines: list[Line], metric: str, view: View) -> str:
    """One row per point of each line, with the lowest and the highest seed."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["line", view.axis, metric, "lowest", "highest", "seeds", "smoothing"])
    for line in lines:
        low, high = (line.y if edge is None else edge for edge in (line.low, line.high))
        for row in np.stack([line.x, line.y, low, high], axis=1).tolist():
            writer.writerow([line.label, *(repr(number) for number in row), line.seeds, view.smoothing])
    return text.getvalue()
