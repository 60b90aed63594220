"""A grid of charts, as many as fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from textual.containers import Grid
from textual.geometry import Size

from rldsl.monitor.chart_lines import value_at
from rldsl.monitor.widgets.chart import Chart, ChartData
from rldsl.report.panel import Line

MAX_CHARTS = 12
CHART_SIZE = Size(38, 9)
"""The smallest chart of the grid."""


class ChartGrid(Grid):
    """Charts that share their x range and crosshair."""

    def show(
        self,
        names: Sequence[str],
        data_of: Callable[[str], ChartData],
        room: Size,
        x_range: tuple[float, float] | None,
        crosshair: float | None,
    ) -> None:
        """Draws the first of these metrics."""
        columns, rows = max(1, room.width // CHART_SIZE.width), max(1, room.height // CHART_SIZE.height)
        shown = names[: min(MAX_CHARTS, columns * rows)]
        self.styles.grid_size_columns = min(columns, len(shown))
        charts = list(self.query(Chart))
        for chart in charts[len(shown) :]:
            chart.remove()
        while len(charts) < len(shown):
            charts.append(Chart())
            self.mount(charts[-1])
        for chart, name in zip(charts, shown, strict=False):
            data = data_of(name)
            chart.show(replace(data, title=f"{name}{_values(data.lines, crosshair)}"), x_range, crosshair)


def _values(lines: Sequence[Line], crosshair: float | None) -> str:
    """The value at the crosshair, or the range of those of several lines."""
    found = [] if crosshair is None else [value_at(line, crosshair) for line in lines]
    values = sorted(one for one in found if one is not None)
    return f"  {' to '.join(dict.fromkeys(f'{one:.4g}' for one in (values[0], values[-1])))}" if values else ""
