"""Renders a chart as lines of the terminal: curves, bands, target, crosshair, axes and markers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from rldsl.monitor.palette import Palette, mix
from rldsl.report.canvas import NO_LINE, Raster, Window, draw, target_row, tick_label, x_labels, y_ticks

if TYPE_CHECKING:
    from rldsl.monitor.widgets.chart import ChartData, Marker

AXIS_WIDTH = 9
"""Columns taken by the labels of the y axis."""
BAND_TINT = 0.17
"""Opacity of a band over the background."""


def chart_strips(data: ChartData, window: Window, crosshair: float | None, size: Size, palette: Palette) -> list[Strip]:
    """The lines of a chart of this size, at least 5 high."""
    width, height = size.width - AXIS_WIDTH, size.height - 2 - bool(data.title)
    colours = [line.color for line in data.lines]
    raster = draw(data.lines, window, width, height)
    labels = y_ticks(window, height)
    if len(labels) < 2:  # a low chart, with few round numbers in its range
        labels = y_ticks(window, height, rows_per_tick=2)
    target = None if data.target is None else target_row(data.target, window, height)
    column = _column(crosshair, window, width)
    rows = [[Segment(f" {data.title}", palette.style("primary", bold=True))]] if data.title else []
    for row in range(height):
        rows.append(_row(raster, row, labels.get(row), row == target, column, colours, palette))
    rows.append(_axis(data.markers, window, width, palette))
    rows.append(_labels(window, width, crosshair, column, data, palette))
    return _strips(rows, size, palette)


def message_strips(text: str, title: str, size: Size, palette: Palette) -> list[Strip]:
    """An empty chart that says why."""
    rows: list[list[Segment]] = [[] for _ in range(size.height)]
    if size.height > 1:
        rows[0] = [Segment(f" {title}", palette.style("primary", bold=True))]
        rows[1] = [Segment(f"  {text}", palette.dim)]
    return _strips(rows, size, palette)


def _strips(rows: list[list[Segment]], size: Size, palette: Palette) -> list[Strip]:
    base = Style(color=palette.colour("foreground"), bgcolor=palette.colour("background"))
    return [Strip(Segment.apply_style(row, base)).adjust_cell_length(size.width, base) for row in rows]


def _column(x: float | None, window: Window, width: int) -> int | None:
    """The column of an x value; None outside of the window."""
    if x is None or not window.x0 <= x <= window.x1:
        return None
    return round((x - window.x0) / (window.x1 - window.x0) * (width - 1))


def _row(
    raster: Raster,
    row: int,
    label: float | None,
    dashed: bool,
    crosshair: int | None,
    colours: Sequence[int],
    palette: Palette,
) -> list[Segment]:
    axis = " " * (AXIS_WIDTH - 1) + "│" if label is None else f"{tick_label(label):>{AXIS_WIDTH - 2}} ┤"
    text = list(raster.text(row).replace(" ", "╌") if dashed else raster.text(row))
    if crosshair is not None and raster.owner[row][crosshair] == NO_LINE:
        text[crosshair] = "┊"
    owners, bands = raster.owner[row].tolist(), raster.band[row].tolist()
    segments = [Segment(axis, palette.dim)]
    for (owner, band), cells in groupby(zip(text, owners, bands, strict=True), key=lambda cell: (cell[1], cell[2])):
        segments.append(Segment("".join(cell[0] for cell in cells), _cell_style(owner, band, colours, palette)))
    return segments


def _axis(markers: Sequence[Marker], window: Window, width: int, palette: Palette) -> list[Segment]:
    cells: list[tuple[str, int | None]] = [("─", None)] * width
    for marker in markers:
        if (column := _column(marker.x, window, width)) is not None and cells[column][0] != "↻":
            cells[column] = marker.symbol, marker.colour
    segments = [Segment(" " * (AXIS_WIDTH - 1) + "└", palette.faint)]
    for colour, group in groupby(cells, key=lambda cell: cell[1]):
        style = palette.faint if colour is None else Style(color=palette.line_colour(colour), bold=True)
        segments.append(Segment("".join(symbol for symbol, _ in group), style))
    return segments


def _labels(
    window: Window, width: int, crosshair: float | None, column: int | None, data: ChartData, palette: Palette
) -> list[Segment]:
    labels = x_labels(window, width, AXIS_WIDTH, data.format_x)
    if crosshair is None or column is None:
        return [Segment(labels, palette.dim)]
    label = f" {data.format_x(crosshair)} "
    start = min(max(0, AXIS_WIDTH + column - len(label) // 2), len(labels) - len(label))
    before, after = labels[:start], labels[start + len(label) :]
    return [
        Segment(before, palette.dim),
        Segment(label, palette.style("accent", bold=True)),
        Segment(after, palette.dim),
    ]


def _cell_style(owner: int, band: int, colours: Sequence[int], palette: Palette) -> Style:
    colour = palette.colour("foreground") if owner == NO_LINE else palette.line_colour(colours[owner])
    return Style(color=colour, bgcolor=_tint(band, colours, palette) if band else None)


def _tint(band: int, colours: Sequence[int], palette: Palette) -> str:
    """The background, tinted with the colour of every line whose band covers the cell."""
    tint = palette.colour("background")
    share = min(BAND_TINT, 2 * BAND_TINT / band.bit_count())  # dots stay visible however many bands overlap
    for index in range(band.bit_length()):
        if band >> index & 1:
            tint = mix(tint, palette.line_colour(colours[index]), share)
    return tint
