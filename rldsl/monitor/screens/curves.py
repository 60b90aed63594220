"""Curves: a metric of the chosen sessions, averaged over seeds or one line per seed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.widgets import Static

from rldsl.monitor.curves import Curve, averaged, metrics_of
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.session_index import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.chart import Chart
from rldsl.report.panel import Line
from rldsl.report.words import count

MAX_SESSIONS = 64
MAX_LINES = 8
AXES = ("frame", "seconds")
RETURN_METRICS = ("episode_return", "episode_return_ma", "eval_return")
"""Metrics that can be compared with the target."""


class CurvesScreen(WatchScreen):
    """Reads the chosen sessions in a thread and draws them as they grow."""

    NAME = "curves"
    AUTO_FOCUS = "Chart"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric(1)", "Metric"),
        Binding("M", "metric(-1)", "Previous metric", show=False),
        Binding("s", "seeds", "Seeds"),
        Binding("L", "log", "Log axis"),
        Binding("x", "axis", "X axis"),
        Binding("plus", "", "Zoom", key_display="+ -"),
        Binding("escape", "app.show('runs')", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.metric, self.axis = "episode_return", "frame"
        self.log_axis = self.each_seed = False
        self.curves: dict[str, Curve] = {}

    def compose_body(self) -> Iterable[Widget]:
        yield Container(Chart(id="chart"), Static(id="legend"), id="body")

    def update_content(self) -> None:
        paths = [session.path for session in self._chosen()]
        self.curves = {path: self.curves.get(path) or Curve(self.app.runs, path) for path in paths}
        self.read(dict(self.curves))

    @work(thread=True, exclusive=True, group="curves", exit_on_error=False)
    def read(self, curves: dict[str, Curve]) -> None:
        """Reads the new log points of each session; a file that was deleted adds none."""
        for curve in curves.values():
            try:
                curve.read()
            except (OSError, ValueError) as error:
                self.app.call_from_thread(self.set_status, f"cannot read a curve: {error}")
        self.app.call_from_thread(self.draw)

    def _chosen(self) -> list[SessionSnapshot]:
        return self.app.chosen()[:MAX_SESSIONS]

    def draw(self) -> None:
        """Draws the points that have been read."""
        lines, sessions = self._lines(), self._chosen()
        targets = {session.status.target for session in sessions} - {None}
        target = targets.pop() if len(targets) == 1 and self.metric in RETURN_METRICS else None
        chart = self.query_one(Chart)
        chart.empty = "no session is chosen" if not sessions else f"no {self.metric} yet"
        chart.show(lines, target, log_axis=self.log_axis)
        self.query_one("#legend", Static).update(self._legend(lines, target))
        self._update_status(sessions, lines)

    def _lines(self) -> list[Line]:
        """One line per trial or per session; at most as many as there are distinguishable colours."""
        groups: dict[tuple[str, str, int], list[str]] = {}
        for session in self._chosen():
            seed = session.status.seed if self.each_seed else -1
            groups.setdefault((session.status.experiment, session.trial, seed), []).append(session.path)
        lines = [self._line(key, paths) for key, paths in groups.items()]
        return sorted(lines, key=lambda line: line.label)[:MAX_LINES]

    def _line(self, key: tuple[str, str, int], paths: list[str]) -> Line:
        experiment, trial, seed = key
        varied = self.app.index.varied.get(experiment)
        label = " ".join(filter(None, [experiment, varied.label(trial) if varied else trial]))
        points = [curve.points(self.axis, self.metric) for path in paths if (curve := self.curves.get(path))]
        return averaged(label, points) if seed < 0 else averaged(f"{label} seed {seed}", points[:1])

    def _legend(self, lines: list[Line], target: float | None) -> Text:
        palette = palette_of(self.app)
        text = Text(no_wrap=True, overflow="ellipsis")
        for index, line in enumerate(lines):
            text.append("━━ ", palette.line_colours[index % len(palette.line_colours)])
            last = "-" if line.last is None else f"{line.last:.4g}"
            text.append(f"{last:>8} ", palette.style("foreground", bold=True))
            text.append(f"×{line.seeds} " if line.seeds > 1 else "", palette.dim)
            text.append(f"{line.label}\n")
        if target is not None:
            text.append("╌╌ ", palette.style("foreground"))
            text.append(f"{target:>8g} ", palette.style("foreground", bold=True))
            text.append("target")
        return text

    def _update_status(self, sessions: list[SessionSnapshot], lines: list[Line]) -> None:
        palette = palette_of(self.app)
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(self.metric, palette.style("primary", bold=True))
        against = f" against {self.axis}" + (", log axis" if self.log_axis else "")
        band = "" if self.each_seed else "; mean and range over seeds"
        more = len(self.app.chosen()) - len(sessions)
        left_out = f"; {count(more, 'session')} left out" if more > 0 else ""
        text.append(
            f"{against}: {count(len(sessions), 'session')}, {count(len(lines), 'line')}{band}{left_out}", palette.dim
        )
        self.set_status(text)

    def action_metric(self, step: int) -> None:
        names = metrics_of(self.curves.values())
        if names:
            index = names.index(self.metric) if self.metric in names else 0
            self.metric = names[(index + step) % len(names)]
            self.draw()

    def commands(self) -> Iterable[SystemCommand]:
        for name in metrics_of(self.curves.values()):
            yield SystemCommand(f"Curve of {name}", f"Draw {name}", partial(self.show_metric, name))

    def show_metric(self, name: str) -> None:
        """Draws another metric."""
        self.metric = name
        self.draw()

    def action_seeds(self) -> None:
        self.each_seed = not self.each_seed
        self.draw()

    def action_log(self) -> None:
        self.log_axis = not self.log_axis
        self.draw()

    def action_axis(self) -> None:
        self.axis = AXES[1 - AXES.index(self.axis)]
        self.query_one(Chart).window = None
        self.draw()
