"""A chart of curves drawn with braille characters, with axes, a target line and bands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from rldsl.monitor.palette import Palette, mix
from rldsl.monitor.themes import palette_of
from rldsl.report.canvas import (
    NO_LINE,
    Raster,
    Window,
    draw,
    target_row,
    tick_label,
    whole_window,
    x_labels,
    y_ticks,
)
from rldsl.report.panel import Line

AXIS_WIDTH = 9
"""Columns taken by the labels of the y axis."""
BAND_TINT = 0.17
"""Opacity of a band over the background."""


class Chart(Widget, can_focus=True):
    """Shows lines; the window fits them until the user zooms."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign,up,k", "zoom(0.6667)", "Zoom in", show=False),
        Binding("minus,down,j", "zoom(1.5)", "Zoom out", show=False),
        Binding("left,h", "pan(-0.2)", "Left", show=False),
        Binding("right,l", "pan(0.2)", "Right", show=False),
        Binding("0", "reset", "Whole", show=False),
    ]

    class Zoomed(Message):
        """The user zoomed or panned."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Line] = ()
        self.target: float | None = None
        self.log_axis = False
        self.window: Window | None = None  # set by zooming; None shows everything
        self.empty = "no log point yet"
        self._strips: list[Strip] = []

    def show(self, lines: Sequence[Line], target: float | None, *, log_axis: bool) -> None:
        """Replaces the lines."""
        self.lines, self.target, self.log_axis = lines, target, log_axis
        self._redraw()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._redraw())

    def on_resize(self) -> None:
        self._redraw()

    def action_zoom(self, factor: float) -> None:
        self._zoom(factor, 0.5)

    def _zoom(self, factor: float, centre: float) -> None:
        if window := self._current_window():
            self.window = window.zoomed(factor, centre)
            self._changed()

    def action_pan(self, share: float) -> None:
        if window := self._current_window():
            self.window = window.moved(share)
            self._changed()

    def action_reset(self) -> None:
        self.window = None
        self._changed()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._zoom(0.8, self._share(event.x))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._zoom(1.25, self._share(event.x))

    def _share(self, x: int) -> float:
        """A column as a share of the width of the plot."""
        return min(1.0, max(0.0, (x - AXIS_WIDTH) / max(1, self.size.width - AXIS_WIDTH)))

    def _changed(self) -> None:
        self._redraw()
        self.post_message(self.Zoomed())

    def _current_window(self) -> Window | None:
        """The x range chosen by the user, or all of it; y always fits the lines."""
        whole = whole_window(self.lines, self.target, self.log_axis)
        if whole is None or self.window is None:
            return whole
        return Window(self.window.x0, self.window.x1, whole.y0, whole.y1, self.log_axis)

    def _redraw(self) -> None:
        self._strips = self._render_strips(palette_of(self.app))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)

    def _render_strips(self, palette: Palette) -> list[Strip]:
        width, height = self.size.width - AXIS_WIDTH, self.size.height - 2
        window = self._current_window()
        base = Style(color=palette.colour("foreground"), bgcolor=palette.colour("background"))
        if window is None or width < 8 or height < 3:
            return self._message(base, palette)
        raster = draw(self.lines, window, width, height)
        labels = y_ticks(window, height)
        target = None if self.target is None else target_row(self.target, window, height)
        rows = [self._row(raster, row, labels.get(row), row == target, palette) for row in range(height)]
        rows.append([Segment(" " * (AXIS_WIDTH - 1) + "└" + "─" * width, palette.faint)])
        rows.append([Segment(x_labels(window, width, AXIS_WIDTH, tick_label), palette.dim)])
        return [Strip(Segment.apply_style(row, base)).adjust_cell_length(self.size.width, base) for row in rows]

    def _message(self, base: Style, palette: Palette) -> list[Strip]:
        blank = Strip([Segment(" " * self.size.width, base)])
        strips = [blank] * self.size.height
        if len(strips) > 1:
            text = Strip([Segment(f"  {self.empty}", base + palette.dim)])
            strips[1] = text.adjust_cell_length(self.size.width, base)
        return strips

    def _row(self, raster: Raster, row: int, label: float | None, dashed: bool, palette: Palette) -> list[Segment]:
        axis = " " * (AXIS_WIDTH - 1) + "│" if label is None else f"{tick_label(label):>{AXIS_WIDTH - 2}} ┤"
        text = raster.text(row).replace(" ", "╌") if dashed else raster.text(row)
        owners, bands = raster.owner[row].tolist(), raster.band[row].tolist()
        segments = [Segment(axis, palette.dim)]
        for (owner, band), cells in groupby(zip(text, owners, bands, strict=True), key=lambda cell: (cell[1], cell[2])):
            segments.append(Segment("".join(cell[0] for cell in cells), _cell_style(owner, band, palette)))
        return segments


def _cell_style(owner: int, band: int, palette: Palette) -> Style:
    colours = palette.line_colours
    colour = palette.colour("foreground") if owner == NO_LINE else colours[owner % len(colours)]
    return Style(color=colour, bgcolor=_tint(band, palette) if band else None)


def _tint(band: int, palette: Palette) -> str:
    """The background, tinted with the colour of every line whose band covers the cell."""
    tint = palette.colour("background")
    share = min(BAND_TINT, 2 * BAND_TINT / band.bit_count())  # dots stay visible however many bands overlap
    for index in range(band.bit_length()):
        if band >> index & 1:
            tint = mix(tint, palette.line_colours[index % len(palette.line_colours)], share)
    return tint
