"""Reading and drawing of the chosen sessions, for the screen Curves."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual import work
from textual.containers import Container
from textual.geometry import Size
from textual.widget import Widget

from rldsl.monitor.chart_groups import groups_of
from rldsl.monitor.chart_lines import Group, View, distinct
from rldsl.monitor.curve_work import Job, Result
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.screens.curves_legend import counted, legend_text, room_for
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.chart import Chart, ChartData
from rldsl.monitor.widgets.chart_grid import MAX_CHARTS, ChartGrid
from rldsl.monitor.widgets.painted import TextLines
from rldsl.report.canvas import tick_label
from rldsl.report.words import duration

SMOOTHING = (0.0, 0.6, 0.9, 0.97, 0.99)
RETURN_METRICS = ("episode_return", "episode_return_ma", "eval_return")
"""Metrics that can be compared with the target."""
MAX_EXPONENT = 300.0
"""Of a logarithmic x axis that was moved far away."""


class CurvesDrawing(WatchScreen):
    """Reads the chosen sessions in a thread and draws them as they grow."""

    def __init__(self) -> None:
        super().__init__()
        self.metric, self.view = "episode_return", View()
        self.log_y = self.each_seed = self.grid = False
        self.x_range: tuple[float, float] | None = None
        self.crosshair: float | None = None
        self.page = 0
        self.result = Result()
        self.reading: float | None = None
        self._job: Job | None = None
        self._busy = False

    def on_mount(self) -> None:
        """Continues with the settings of the last time."""
        kept = self.app.settings.curves
        self.metric = str(kept.get("metric") or self.metric)
        self.grid, self.each_seed, self.log_y = (kept.get(name) is True for name in ("grid", "each_seed", "log_y"))
        smoothing = kept.get("smoothing")
        self.view = View(smoothing=smoothing if smoothing in SMOOTHING else 0.0)

    def _keep(self) -> None:
        kept = {"metric": self.metric, "grid": self.grid, "each_seed": self.each_seed, "log_y": self.log_y}
        self.app.settings.curves = {**kept, "smoothing": self.view.smoothing}

    def compose_body(self) -> Iterable[Widget]:
        yield Container(Chart(id="chart"), ChartGrid(id="charts"), id="body")
        yield TextLines(id="legend")

    # What is drawn

    def groups(self) -> list[Group]:
        """All lines: pinned ones first, then by label."""
        chosen = {one.path: one for one in [*self.app.in_order(self.app.pinned), *self.chosen()]}
        return groups_of(self.app, chosen.values(), self.each_seed)

    def shown_groups(self) -> list[Group]:
        """The lines of the current page."""
        groups, size = self.groups(), room_for(self.size)
        self.page = min(self.page, max(0, (len(groups) - 1) // size))
        page = groups[self.page * size : (self.page + 1) * size]
        return distinct(page, len(palette_of(self.app).line_colours))

    def update_content(self) -> None:
        self._request()

    def on_resize(self) -> None:
        self.call_after_refresh(self._request)

    def _request(self) -> None:
        """Draws with the present settings, after reading what is new: in a thread, one request at a time."""
        self._job = Job(self.shown_groups(), self._metrics, self.view)
        self._start()

    def _start(self) -> None:
        """Begins with the last request, once the thread is free. Called on the event loop, so that none is lost."""
        if self._job is not None and not self._busy:
            self._busy = True
            job, self._job = self._job, None
            self._work(job)

    def _metrics(self, names: list[str]) -> list[str]:
        return names[: 2 * MAX_CHARTS] if self.grid else [self.metric]

    @work(thread=True, group="curves", exit_on_error=False)
    def _work(self, job: Job) -> None:
        result = None
        try:
            result = self.app.curve_worker.run(job, self._progress)
        finally:
            self.app.call_from_thread(self._end, result)

    def _end(self, result: Result | None) -> None:
        self._busy = False
        if result is not None:
            self._show_result(result)
        self._start()

    def _progress(self, share: float) -> None:
        self.app.call_from_thread(self._show_progress, share)

    def _show_progress(self, share: float) -> None:
        self.reading = share
        self._update_status()
        if not self.result.lines:
            self.draw()

    def _show_result(self, result: Result) -> None:
        if (result.view.axis, result.view.log_x) != (self.result.view.axis, self.result.view.log_x):
            self.x_range = self.crosshair = None  # of the axis before
        self.result, self.reading = result, None
        self.draw()

    # Drawing

    def draw(self) -> None:
        """Draws the lines that have been made."""
        if not self.is_mounted:
            return
        self._keep()
        self.set_class(self.grid, "-grid")
        self._draw_grid() if self.grid else self._draw_one()
        lines = self.result.lines.get(self.metric) or next(iter(self.result.lines.values()), ())
        shown = [one for one in self.shown_groups() if one.label in {line.label for line in lines}]
        text = legend_text(
            lines, shown, self._target(self.metric), self.crosshair, self.result.problems, self.app.sessions,
            self.result.view.smoothing, self.size, palette_of(self.app),
        )  # fmt: skip
        legend = self.query_one("#legend", TextLines)
        legend.styles.height = max(1, len(text.plain.splitlines()))
        legend.show(text)
        self._update_status()

    def _draw_one(self) -> None:
        self.query_one("#chart", Chart).show(self._data(self.metric), self.x_range, self.crosshair)

    def _draw_grid(self) -> None:
        """Begins with the current metric."""
        names = list(self.result.names) or [self.metric]
        start = names.index(self.metric) if self.metric in names else 0
        room = Size(self.size.width, self.size.height - 4 - len(self.result.lines.get(self.metric, ())))
        grid = self.query_one(ChartGrid)
        grid.show([*names[start:], *names[:start]], self._data, room, self.x_range, self.crosshair)

    def _data(self, metric: str) -> ChartData:
        lines = self.result.lines.get(metric, ())
        return ChartData(
            lines, self._target(metric), self.log_y, "", self.result.markers, self._format_x, self._empty(metric)
        )

    def _empty(self, metric: str) -> str:
        if self.reading is not None or (self._busy and not self.result.lines):
            return f"reading {self.reading or 0:.0%} ..."
        return f"no {metric} yet" if self.chosen() else "no session is chosen"

    def _format_x(self, x: float) -> str:
        """As the lines that are drawn were made; those of a new setting may still be on their way."""
        view = self.result.view
        x = 10.0 ** min(x, MAX_EXPONENT) if view.log_x else x
        return duration(x) if view.axis == "seconds" else tick_label(x)

    def _target(self, metric: str) -> float | None:
        paths = [path for group in self.shown_groups() for path in group.paths]
        targets = {self.app.sessions[path].status.target for path in paths} - {None}
        return targets.pop() if len(targets) == 1 and metric in RETURN_METRICS else None

    def _update_status(self) -> None:
        palette, groups, size = palette_of(self.app), self.groups(), room_for(self.size)
        text = Text(no_wrap=True, overflow="ellipsis")
        if self.reading is not None:
            text.append(f"reading {self.reading:.0%}  ", palette.style("warning", bold=True))
        text.append("all metrics" if self.grid else self.metric, palette.style("primary", bold=True))
        axes = [f" against {self.view.axis}", *([", log x"] * self.view.log_x), *([", log axis"] * self.log_y)]
        pages = f"; page {self.page + 1} of {-(-len(groups) // size)} (pgdn)" if len(groups) > size else ""
        text.append("".join(axes) + counted(groups) + pages, palette.dim)
        text.append("" if self.each_seed else "; mean and range over seeds", palette.dim)
        self.set_status(text)
