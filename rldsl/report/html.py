"""An interactive page drawn by plotly: one file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rldsl.report.panel import WALL_TIME, Line, Panel, data_digest, labelled
from rldsl.store.errors import writing
from rldsl.store.files import replace_text

PANEL_HEIGHT = 420
BAND_OPACITY = 0.15
CONFIG = {"displaylogo": False, "responsive": True, "showSendToCloud": False, "plotlyServerURL": ""}
"""No button that uploads a plot to plotly's server."""
HINT = "Click a name to hide its curve, double-click it to show no other; drag to zoom, double-click to zoom out."
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 1100px; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin-top: 2em; }
table { border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto; }
th, td { padding: .25em .8em; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
th { color: #555; font-weight: 600; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.panel { margin: 1em 0; } .hint { color: #555; }
"""


@dataclass(frozen=True)
class Section:
    """A part of a page: a heading, HTML below it (see `html_table`), then interactive panels."""

    title: str
    panels: Sequence[Panel] = ()
    html: str = ""


def save_page(path: Path, title: str, sections: Sequence[Section]) -> None:
    """Writes `page(title, sections)` to a file."""
    text = page(title, sections)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text)


def page(title: str, sections: Sequence[Section]) -> str:
    """The whole page, with one copy of plotly.js (4.8 MB) in it. The same sections give the same text."""
    from plotly.offline import get_plotlyjs

    digest = data_digest([panel for section in sections for panel in section.panels])
    numbers = iter(range(1, 1 + sum(len(section.panels) for section in sections)))
    parts = [part for section in sections for part in _section(section, numbers)]
    script = f"<script>{get_plotlyjs()}</script>" if any(section.panels for section in sections) else ""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="description" content="rldsl data {digest}">',
            '<link rel="icon" href="data:,">',  # otherwise a browser asks a server for one
            f"<title>{escape(title)}</title><style>{STYLE}</style>{script}</head>",
            f"<body><h1>{escape(title)}</h1>",
            f'<p class="hint">{HINT}</p>' if script else "",
            *parts,
            "</body></html>\n",
        ]
    )


def html_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """A table of plain texts; the columns in `right` are aligned to the right."""
    kinds = [' class="number"' if name in right else "" for name in names]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(names, kinds, strict=True))
    lines = [
        "<tr>" + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table>"


def _section(section: Section, numbers: Iterator[int]) -> Iterator[str]:
    if section.title:
        yield f"<h2>{escape(section.title)}</h2>"
    if section.html:
        yield section.html
    for panel in section.panels:
        yield f'<div class="panel">{_plot(panel, f"panel-{next(numbers)}")}</div>'


def _plot(panel: Panel, id: str) -> str:
    from plotly.io import to_html

    traces = [trace for line, first in labelled(panel.lines) for trace in _traces(line, panel, first)]
    figure = {"data": [*traces, *_target(panel)], "layout": _layout(panel)}
    return str(
        to_html(
            figure,
            config=CONFIG,
            include_plotlyjs=False,
            full_html=False,
            div_id=id,
            default_height=f"{PANEL_HEIGHT}px",
            validate=False,
        )
    )


def _traces(line: Line, panel: Panel, in_legend: bool) -> Iterator[dict[str, Any]]:
    """The band of a line, then the line; both are hidden by a click on the legend."""
    drawn = line.thinned()
    name = escape(line.label)
    common = {"type": "scatter", "legendgroup": line.label, "name": name}
    x = _x_values(drawn, panel)
    if drawn.low is not None and drawn.high is not None:
        known = np.isfinite(drawn.low) & np.isfinite(drawn.high)
        around, low, high = [value for value, k in zip(x, known, strict=True) if k], drawn.low[known], drawn.high[known]
        yield {
            **common,
            "x": [*around, *reversed(around)],
            "y": [*_numbers(high), *reversed(_numbers(low))],
            "fill": "toself",
            "fillcolor": _rgba(line.css_color, BAND_OPACITY),
            "line": {"width": 0},
            "mode": "lines",
            "hoverinfo": "skip",
            "showlegend": False,
        }
    yield {
        **common,
        "x": x,
        "y": _numbers(drawn.y),
        "mode": "markers" if len(drawn.x) == 1 else "lines",
        "line": {"color": line.css_color, "dash": line.dash, "width": 2},
        "marker": {"color": line.css_color},
        "text": _hover_texts(drawn),
        "hovertemplate": "%{text}",
        "showlegend": in_legend,
    }


def _target(panel: Panel) -> Iterator[dict[str, Any]]:
    """The target as a dashed line over the whole width."""
    ends = [edge for line in panel.lines if len(line.x) for edge in _x_values(line, panel)]
    if panel.target is not None and ends:
        yield {
            "type": "scatter",
            "mode": "lines",
            "name": f"target {panel.target:g}",
            "hoverinfo": "skip",
            "x": [min(ends), max(ends)],
            "y": [panel.target, panel.target],
            "line": {"color": "#555", "width": 1, "dash": "dash"},
        }


def _x_values(line: Line, panel: Panel) -> list[float]:
    """Frames and updates as they are; wall time in minutes, which the axis is labelled with."""
    return _numbers(line.x / 60 if panel.axis == WALL_TIME else line.x)


def _hover_texts(line: Line) -> list[str]:
    if line.low is None or line.high is None:
        return [f"{value:.5g}" for value in line.y]
    edges = zip(line.y, line.low, line.high, strict=True)
    return [
        f"{value:.5g} ({low:.5g} to {high:.5g})" if np.isfinite(low) else f"{value:.5g}" for value, low, high in edges
    ]


def _layout(panel: Panel) -> dict[str, Any]:
    remarks = "<br>".join(map(escape, panel.remarks))
    return {
        "title": {"text": f"<b>{escape(panel.title)}</b>", "x": 0, "xanchor": "left"},
        "xaxis": {
            "title": {"text": "wall time (minutes)" if panel.axis == WALL_TIME else panel.axis.name},
            "gridcolor": "#eee",
            "zeroline": False,
        },
        "yaxis": {"title": {"text": escape(panel.metric)}, "gridcolor": "#eee", "zeroline": False},
        "legend": {"title": {"text": remarks, "font": {"size": 11}}},
        "hovermode": "x unified",
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "margin": {"l": 60, "r": 20, "t": 60, "b": 50},
        "height": PANEL_HEIGHT,
    }


def _numbers(values: Any) -> list[float]:
    """Rounded to six digits, which no screen can show, and a third of the size."""
    return [float(f"{value:.6g}") for value in values]


def _rgba(color: str, opacity: float) -> str:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
