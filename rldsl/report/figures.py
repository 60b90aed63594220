"""Figures as PNG and SVG, drawn by matplotlib. The same panels give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rldsl.report.panel import WALL_TIME, Line, Panel, data_digest, labelled
from rldsl.report.words import time_ticks
from rldsl.spec.errors import SpecError
from rldsl.store.errors import writing
from rldsl.store.files import replace_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
PANEL_SIZE = 7.2, 3.8
"""Inches of one panel."""
MOST_COLUMNS = 2
DPI = 120
BAND_OPACITY = 0.18
LINE_STYLES: dict[str, Any] = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dot": (0, (1, 1.5)),
    "dashdot": (0, (5, 1.5, 1, 1.5)),
}
DIGEST = re.compile(rb"rldsl data ([0-9a-f]{16})")
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 10,
    "figure.constrained_layout.h_pad": 0.08,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",  # letters as shapes: the file looks the same without the font
    "svg.hashsalt": "rldsl",  # ids of the SVG's elements; random otherwise
}


def save_figure(panels: Sequence[Panel], path: Path) -> None:
    """Writes the panels into one figure, as the suffix of the path says: `.png` or `.svg`."""
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise SpecError(f"a figure is written as .png or .svg, not as {path.name}")
    data = figure_bytes(panels, suffix)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, data)


def figure_bytes(panels: Sequence[Panel], format: str) -> bytes:
    """The figure as PNG or SVG. Its metadata has no date and no version, but the digest of what it shows."""
    digest = f"rldsl data {data_digest(panels)}"
    nothing: dict[str, str | None] = {"Software": None} if format == "png" else {"Date": None, "Creator": None}
    buffer = BytesIO()
    with _style():
        make_figure(panels).savefig(buffer, format=format, dpi=DPI, metadata={**nothing, "Description": digest})
    return buffer.getvalue()


def digest_in(path: Path) -> str | None:
    """The `data_digest` of the panels that a figure was drawn from; None if it is none of ours."""
    try:
        match = DIGEST.search(path.read_bytes())
    except OSError:
        return None
    return match[1].decode() if match else None


@contextmanager
def _style() -> Iterator[None]:
    """Our settings on top of matplotlib's defaults, whatever the user's matplotlibrc says."""
    import matplotlib

    settings: dict[Any, Any] = matplotlib.rcParams
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings.update(STYLE)
        yield


def make_figure(panels: Sequence[Panel]) -> Figure:
    """A figure with all panels, two in a row. Independent of pyplot, whose state belongs to the user."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(MOST_COLUMNS, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    figure = Figure(figsize=(PANEL_SIZE[0] * columns, PANEL_SIZE[1] * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for number, panel in enumerate(panels, 1):
        _draw(figure.add_subplot(rows, columns, number), panel)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", fontweight="bold")
    axes.set_xlabel(panel.axis.name)
    axes.set_ylabel(panel.metric)
    for line, first in labelled(panel.lines):
        _draw_line(axes, line.thinned(), line.label if first else "")
    if panel.target is not None:
        axes.axhline(
            panel.target, color="#555555", linewidth=1, linestyle=(0, (4, 3)), label=f"target {panel.target:g}"
        )
    axes.margins(x=0.01)
    if panel.axis == WALL_TIME:
        ticks = time_ticks(*axes.get_xlim())
        axes.set_xticks(list(ticks), list(ticks.values()))
    else:
        axes.xaxis.set_major_formatter(lambda value, _: panel.axis.format(value))
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1, 1),  # beside the curves, never on top of them
            fontsize=8,
            title="\n".join(panel.remarks) or None,
            title_fontsize=8,
            alignment="left",
        )


def _draw_line(axes: Axes, line: Line, label: str) -> None:
    style: dict[str, Any] = {"color": line.css_color, "linestyle": LINE_STYLES[line.dash], "linewidth": 1.6}
    if len(line.x) == 1:
        style["marker"] = "o"
    if line.low is not None and line.high is not None:
        known = np.isfinite(line.low) & np.isfinite(line.high)
        axes.fill_between(
            line.x, line.low, line.high, where=known.tolist(), color=line.css_color, alpha=BAND_OPACITY, linewidth=0
        )
    axes.plot(line.x, line.y, label=label or "_", **style)  # matplotlib leaves labels with _ out of the legend
