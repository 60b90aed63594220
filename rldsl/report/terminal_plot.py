"""A panel in the terminal, drawn with braille characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rldsl.report.canvas import NO_LINE, Raster, draw, target_row, tick_label, whole_window, x_labels, y_ticks
from rldsl.report.panel import Line, Panel, labelled

if TYPE_CHECKING:
    from rich.text import Text

WIDTH, HEIGHT = 66, 12
"""Characters of a plot, without its axes."""
AXIS_WIDTH = 9
COLORS = ("blue", "yellow", "green", "red", "magenta", "cyan", "bright_black")
"""The terminal's own colours, in the order of those of a figure."""
LINE_MARKS = ("━", "╍", "┅", "┉")
"""What marks a line in the legend, by its line style."""


def terminal_plot(panel: Panel, width: int = WIDTH, height: int = HEIGHT) -> list[Text]:
    """The lines of text that show a panel: a title, the curves between axes, a legend with the last values."""
    from rich.text import Text

    lines = [line.thinned(4 * width) for line in panel.lines if len(line.x)]
    window = whole_window(lines, panel.target, log=False)
    shown = f"{panel.metric} by {panel.axis.name}{f', {panel.note}' if panel.note else ''}"  # bands are not drawn
    title = Text.assemble((panel.title, "bold"), f"  {shown}")
    if window is None:
        return [title, Text("  no log point yet", "dim")]
    raster = draw(lines, window, width, height)
    target = None if panel.target is None else target_row(panel.target, window, height)
    ticks = y_ticks(window, height, rows_per_tick=2)
    rows = [_row(raster, row, ticks.get(row), row == target, lines) for row in range(height)]
    axis = Text(f"{'':{AXIS_WIDTH - 1}}└{'─' * width}", "dim")
    labels = x_labels(window, width, AXIS_WIDTH, panel.axis.format)
    return [title, *rows, axis, Text(labels, "dim"), *_legend(panel, lines, AXIS_WIDTH + width)]


def _row(raster: Raster, row: int, label: float | None, dashed: bool, lines: Sequence[Line]) -> Text:
    from rich.text import Text

    axis = f"{'':{AXIS_WIDTH - 1}}│" if label is None else f"{tick_label(label):>{AXIS_WIDTH - 2}} ┤"
    text = raster.text(row).replace(" ", "╌") if dashed else raster.text(row)
    drawn = Text(axis, "dim")
    for owner, cells in groupby(zip(text, raster.owner[row].tolist(), strict=True), key=lambda cell: cell[1]):
        style = "dim" if owner == NO_LINE else _color(lines[owner])
        drawn.append("".join(cell[0] for cell in cells), style)
    drawn.rstrip()
    return drawn


def _legend(panel: Panel, lines: Sequence[Line], width: int) -> Iterator[Text]:
    """The entries of the legend, as many in a line as fit."""
    from rich.text import Text

    entries = [_entry(line) for line, first in labelled(lines) if first]
    if panel.target is not None:
        entries.append(Text(f"╌╌ target {panel.target:g}", "dim"))
    if panel.smoothing:
        entries.append(Text(panel.smoothing, "dim"))
    entry_line = Text(" " * AXIS_WIDTH)
    for entry in entries:
        if entry_line.cell_len > AXIS_WIDTH and entry_line.cell_len + entry.cell_len > width:
            entry_line.rstrip()
            yield entry_line
            entry_line = Text(" " * AXIS_WIDTH)
        entry_line.append_text(entry).append("   ")
    entry_line.rstrip()
    yield entry_line


def _entry(line: Line) -> Text:
    from rich.text import Text

    mark = LINE_MARKS[line.color // len(COLORS) % len(LINE_MARKS)] * 2
    return Text.assemble((mark, _color(line)), f" {line.label}", (f" {line.last:.4g}", "bold"))


def _color(line: Line) -> str:
    return COLORS[line.color % len(COLORS)]
