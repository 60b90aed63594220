"""A chart of curves drawn with braille characters, with axes, a target line, bands, a crosshair and markers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.chart_strips import AXIS_WIDTH, chart_strips, message_strips
from rldsl.monitor.widgets.painted import Painted
from rldsl.report.canvas import Window, tick_label, whole_window
from rldsl.report.panel import Line

Range = tuple[float, float]

MOST_ZOOMED_IN = 1e-4
"""The smallest window, as a share of all x values."""
MOST_ZOOMED_OUT = 2.0


class Marker(NamedTuple):
    """A point of the x axis where something happened."""

    x: float
    symbol: str
    colour: int


@dataclass(frozen=True)
class ChartData:
    """What a chart shows."""

    lines: Sequence[Line] = ()
    target: float | None = None
    log_y: bool = False
    title: str = ""
    markers: Sequence[Marker] = ()
    format_x: Callable[[float], str] = tick_label
    empty: str = "no log point yet"


class Chart(Painted):
    """Shows lines. The window and the crosshair belong to the screen, which shares them between its charts."""

    class Zoomed(Message):
        """The user chose another x range; None is all of it."""

        def __init__(self, x_range: Range | None) -> None:
            super().__init__()
            self.x_range = x_range

    class Pointed(Message):
        """The user moved the crosshair; None hides it."""

        def __init__(self, x: float | None) -> None:
            super().__init__()
            self.x = x

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.data = ChartData()
        self.x_range: Range | None = None
        self.crosshair: float | None = None
        self._strips: list[Strip] = []
        self._dragged: tuple[int, Range] | None = None

    def show(self, data: ChartData, x_range: Range | None, crosshair: float | None) -> None:
        """Replaces everything that the chart shows."""
        self.data, self.x_range, self.crosshair = data, x_range, crosshair
        self.redraw()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.redraw())

    def on_resize(self) -> None:
        super().on_resize()
        self.redraw()

    def redraw(self) -> None:
        """Draws the lines again and sends what has changed."""
        palette, window = palette_of(self.app), self.window
        if window is None or self._plot_width < 8 or self.size.height < 5:
            self._strips = message_strips(self.data.empty, self.data.title, self.size, palette)
        else:
            self._strips = chart_strips(self.data, window, self.crosshair, self.size, palette)
        self.repaint()

    def draw_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, Style(bgcolor=palette_of(self.app).colour("background")))

    @property
    def _plot_width(self) -> int:
        return self.size.width - AXIS_WIDTH

    @property
    def whole(self) -> Window | None:
        """The window that shows everything."""
        return whole_window(self.data.lines, self.data.target, self.data.log_y)

    @property
    def window(self) -> Window | None:
        """The chosen x range, with the y range that fits the lines in it."""
        whole = self.whole
        if whole is None or self.x_range is None:
            return whole
        inside = [cut(line, *self.x_range) for line in self.data.lines]
        fitted = whole_window([line for line in inside if len(line.x)], None, self.data.log_y) or whole
        return Window(*self.x_range, fitted.y0, fitted.y1, self.data.log_y)

    def zoom(self, factor: float) -> None:
        """Zooms around the middle."""
        self._zoom(factor, 0.5)

    def _zoom(self, factor: float, centre: float) -> None:
        if window := self.window:
            self._choose(window.zoomed(factor, centre))

    def pan(self, share: float) -> None:
        """Moves the window by a share of its width."""
        if window := self.window:
            self._choose(window.moved(share))

    def _choose(self, window: Window) -> None:
        """Keeps the window near the lines, neither too small nor too large."""
        whole = self.whole
        if whole is None:
            return
        size = whole.x1 - whole.x0
        width = min(max(window.x1 - window.x0, size * MOST_ZOOMED_IN), size * MOST_ZOOMED_OUT)
        middle = min(max((window.x0 + window.x1) / 2, whole.x0), whole.x1)
        self.post_message(self.Zoomed((middle - width / 2, middle + width / 2)))

    def point(self, columns: int) -> None:
        """Moves the crosshair by columns; it starts in the middle."""
        window = self.window
        if window is None:
            return
        step = (window.x1 - window.x0) / max(1, self._plot_width - 1)
        x = (window.x0 + window.x1) / 2 if self.crosshair is None else self.crosshair + columns * step
        self.post_message(self.Pointed(min(max(x, window.x0), window.x1)))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._zoom(0.8, self._share(event.x))
        event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._zoom(1.25, self._share(event.x))
        event.stop()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if window := self.window:
            self._dragged = event.x, (window.x0, window.x1)
            self.capture_mouse()

    def on_mouse_up(self) -> None:
        self._dragged = None
        self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Dragging moves the window, moving alone the crosshair."""
        window = self.window
        if window is None:
            return
        if self._dragged is not None:
            start, (x0, x1) = self._dragged
            shift = (start - event.x) / max(1, self._plot_width - 1) * (x1 - x0)
            self._choose(replace(window, x0=x0 + shift, x1=x1 + shift))
        elif event.x >= AXIS_WIDTH:
            self.post_message(self.Pointed(window.x0 + self._share(event.x) * (window.x1 - window.x0)))

    def _share(self, x: int) -> float:
        """A column as a share of the width of the plot."""
        return min(1.0, max(0.0, (x - AXIS_WIDTH) / max(1, self._plot_width - 1)))


def cut(line: Line, x0: float, x1: float) -> Line:
    """The part of a line between two x values, and one point on either side of it."""
    first, last = np.searchsorted(line.x, [x0, x1])
    if first >= len(line.x) or last == 0:
        return replace(line, x=line.x[:0], y=line.y[:0], low=None, high=None)
    part = slice(max(0, int(first) - 1), int(last) + 1)
    low, high = (None if edge is None else edge[part] for edge in (line.low, line.high))
    return replace(line, x=line.x[part], y=line.y[part], low=low, high=high)
