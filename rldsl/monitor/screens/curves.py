"""Curves: metrics of the chosen sessions, averaged over seeds or one line per seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType

from rldsl.monitor.chart_export import EXPORTS, chart_file
from rldsl.monitor.chart_lines import View
from rldsl.monitor.screens.curves_drawing import SMOOTHING, CurvesDrawing
from rldsl.monitor.screens.curves_legend import room_for
from rldsl.monitor.screens.dialogs import Choose
from rldsl.monitor.widgets.chart import Chart, ChartData

AXES = ("frame", "seconds")


class CurvesScreen(CurvesDrawing):
    """The keys and the mouse."""

    NAME = "curves"
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric(1)", "Metric"),
        Binding("M", "metric(-1)", "Previous metric", show=False),
        Binding("v", "grid", "Grid"),
        Binding("s", "seeds", "Seeds", show=False),
        Binding("e", "smooth", "Smooth"),
        Binding("i", "inspect", "Crosshair", show=False),
        Binding("L", "log", "Log y", show=False),
        Binding("X", "log_x", "Log x", show=False),
        Binding("x", "axis", "X axis", show=False),
        Binding("pagedown,greater_than_sign", "page(1)", "Next page", show=False),
        Binding("pageup,less_than_sign", "page(-1)", "Previous page", show=False),
        Binding("p", "pin", "Pin", show=False),
        Binding("w", "save", "Save", show=False),
        Binding("plus,equals_sign,up,k", "zoom(0.6667)", "Zoom", key_display="+ -"),
        Binding("minus,down,j", "zoom(1.5)", "Zoom out", show=False),
        Binding("left,h", "pan(-0.2)", "Left", show=False),
        Binding("right,l", "pan(0.2)", "Right", show=False),
        Binding("0", "reset", "Whole", show=False),
        Binding("full_stop", "point(1)", "Crosshair right", show=False),
        Binding("comma", "point(-1)", "Crosshair left", show=False),
        Binding("escape", "leave", "Back", show=False),
    ]

    @on(Chart.Zoomed)
    def _zoomed(self, event: Chart.Zoomed) -> None:
        self.x_range = event.x_range
        self.draw()

    @on(Chart.Pointed)
    def _pointed(self, event: Chart.Pointed) -> None:
        self.crosshair = event.x
        self.draw()

    @property
    def _chart(self) -> Chart:
        """The chart that keys apply to; the others follow it."""
        charts = self.query("#charts Chart") if self.grid else self.query("#chart")
        return next((one for one in charts.results(Chart) if one.window), self.query_one("#chart", Chart))

    def action_zoom(self, factor: float) -> None:
        self._chart.zoom(factor)

    def action_pan(self, share: float) -> None:
        self._chart.pan(share)

    def action_reset(self) -> None:
        self.x_range = None
        self.draw()

    def action_point(self, columns: int) -> None:
        self._chart.point(columns)

    def action_metric(self, step: int) -> None:
        names = list(self.result.names)
        if names:
            index = names.index(self.metric) if self.metric in names else 0
            self.show_metric(names[(index + step) % len(names)])

    def commands(self) -> Iterable[SystemCommand]:
        for name in self.result.names:
            yield SystemCommand(f"Curve of {name}", f"Draw {name}", partial(self.show_metric, name))

    def show_metric(self, name: str) -> None:
        """Draws another metric."""
        self.metric = name
        self._request()

    def action_grid(self) -> None:
        self.grid = not self.grid
        self._request()

    def action_seeds(self) -> None:
        self.each_seed, self.page = not self.each_seed, 0
        self._request()

    def action_smooth(self) -> None:
        weight = SMOOTHING[(SMOOTHING.index(self.view.smoothing) + 1) % len(SMOOTHING)]
        self.view = replace(self.view, smoothing=weight)
        self._request()

    def action_inspect(self) -> None:
        if self.crosshair is None:
            self.action_point(0)
        else:
            self.crosshair = None
            self.draw()

    def action_log(self) -> None:
        self.log_y = not self.log_y
        self.draw()

    def action_log_x(self) -> None:
        self._change_axis(replace(self.view, log_x=not self.view.log_x))

    def action_axis(self) -> None:
        self._change_axis(replace(self.view, axis=AXES[1 - AXES.index(self.view.axis)]))

    def _change_axis(self, view: View) -> None:
        self.view, self.x_range, self.crosshair = view, None, None
        self._request()

    def action_page(self, step: int) -> None:
        pages = max(1, -(-len(self.groups()) // room_for(self.size)))
        self.page = (self.page + step) % pages
        self._request()

    def action_pin(self) -> None:
        self.app.pin(session.path for session in self.chosen())
        self._request()

    def action_save(self) -> None:
        """Asks for a format and writes the chart that is shown."""
        self.app.push_screen(
            Choose("Save the chart as", {key: name.upper() for key, name in EXPORTS.items()}), self._save
        )

    def _save(self, key: str | None) -> None:
        if key:
            self._write(EXPORTS[key], self._data(self.metric), self.x_range)

    @work(thread=True, group="save", exit_on_error=False)
    def _write(self, format: str, data: ChartData, x_range: tuple[float, float] | None) -> None:
        name, content = chart_file(format, self.metric, data, x_range, self.result.view)
        self.app.call_from_thread(self.app.save_file, name, content)

    def action_leave(self) -> None:
        if self.crosshair is not None:
            self.action_inspect()
        else:
            self.app.action_show("runs")
