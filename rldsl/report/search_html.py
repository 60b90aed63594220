"""The report of a search as one HTML page with interactive figures; it contains plotly.js and needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldsl.report.search_figures import HIGHLIGHT
from rldsl.report.search_report import AxisColumn, SearchReport
from rldsl.report.search_words import sentences
from rldsl.report.words import amount, duration, value
from rldsl.search.leaderboard import RankedTrial
from rldsl.store.files import replace_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.15rem .8rem .15rem 0;text-align:right}"
    "th{border-bottom:1px solid #999}.scroll{max-height:30rem;overflow:auto}"
)


def write_html(report: SearchReport, path: Path) -> None:
    """Writes the page."""
    from plotly.io import to_html

    body = [f"<h1>{escape(report.experiment.name)}</h1>", *(f"<p>{escape(one)}</p>" for one in sentences(report))]
    library: bool | str = True  # plotly.js goes into the page once, with the first figure
    for title, figure in _figures(report):
        shown = to_html(figure, full_html=False, include_plotlyjs=library, div_id=title.replace(" ", "-").lower())
        body += [f"<h2>{title}</h2>", shown]
        library = False
    body += ["<h2>Trials</h2>", '<div class="scroll">', *_table(report), "</div>"]
    title = escape(report.experiment.name)
    head = f'<!doctype html><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    replace_text(path, "\n".join([head, *body]) + "\n")


def _figures(report: SearchReport) -> Iterable[tuple[str, Figure]]:
    known = [row for row in report.rows if row.value is not None and row.state != "failed"]
    if not known:
        return
    yield "Parallel coordinates", _parallel(report, known)
    if len(report.rungs) > 1:
        yield "Rungs", _rungs(report)
    if report.importance is not None:
        yield "Importance", _importance(report)
    yield "Value and time", _pareto(report, known)


def _parallel(report: SearchReport, rows: Sequence[RankedTrial]) -> Figure:
    from plotly.graph_objects import Figure, Parcoords

    values = [row.value for row in rows]
    axes = [_axis(column, rows) for column in report.columns]
    line = {"color": values, "colorscale": "Viridis", "showscale": True}
    return _styled(Figure(Parcoords(line=line, dimensions=[*axes, {"label": "value", "values": values}])), 460)


def _axis(column: AxisColumn, rows: Sequence[RankedTrial]) -> dict[str, Any]:
    """A trial without this axis passes below its values, at a tick of its own."""
    low, high = min(column.ticks), max(column.ticks)
    below = low - 0.12 * (high - low or 1.0)
    positions = [column.positions.get(row.number, below) for row in rows]
    ticks = dict(column.ticks) if below not in positions else {below: "none", **column.ticks}
    bounds = [min(ticks), high if high > low else high + 1]
    return {
        "label": column.label,
        "values": positions,
        "tickvals": list(ticks),
        "ticktext": list(ticks.values()),
        "range": bounds,
    }


def _rungs(report: SearchReport) -> Figure:
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    for row in reversed(report.rows):
        curve = report.curves[row.number]
        best = report.best is not None and row.number == report.best.number
        line = {"color": HIGHLIGHT, "width": 3} if best else {"color": "#999", "width": 1}
        frames = [report.rungs[rung].frames for rung in curve]
        figure.add_trace(
            Scatter(
                x=frames, y=list(curve.values()), name=_name(row), line=line, mode="lines+markers", showlegend=False
            )
        )
    ticks = {rung.frames: f"rung {rung.rung}, {amount(rung.frames)}" for rung in report.rungs}
    figure.update_xaxes(type="log", tickvals=list(ticks), ticktext=list(ticks.values()), title="frames")
    figure.update_yaxes(title="value")
    return _styled(figure)


def _importance(report: SearchReport) -> Figure:
    from plotly.graph_objects import Bar, Figure

    assert report.importance is not None
    names, shares = list(report.importance.axes), list(report.importance.axes.values())
    figure = Figure(Bar(x=shares[::-1], y=names[::-1], orientation="h", marker={"color": "#555"}))
    figure.update_xaxes(title="increase of the squared error when permuted, as a share of the variance")
    return _styled(figure, 160 + 30 * len(names))


def _pareto(report: SearchReport, rows: Sequence[RankedTrial]) -> Figure:
    from plotly.graph_objects import Figure, Scatter

    def points(of: Sequence[RankedTrial], **style: Any) -> Scatter:
        x, y = [row.seconds for row in of], [row.value for row in of]
        return Scatter(x=x, y=y, text=[_name(row) for row in of], hoverinfo="text+x+y", showlegend=False, **style)

    figure = Figure([points(rows, mode="markers", marker={"color": "#999"})])
    figure.add_trace(points(report.front, mode="lines+markers", line={"color": HIGHLIGHT}))
    figure.update_xaxes(title="training time of all seeds, seconds")
    figure.update_yaxes(title="value")
    return _styled(figure)


def _styled(figure: Figure, height: int = 420) -> Figure:
    return figure.update_layout(template="plotly_white", height=height, margin={"t": 60, "b": 60})


def _name(row: RankedTrial) -> str:
    settings = ", ".join(f"{path.removeprefix('agent.')} = {value(one)}" for path, one in row.point.items())
    return f"trial {row.number}: {settings}"


def _table(report: SearchReport) -> Iterable[str]:
    paths = list(dict.fromkeys(path for row in report.rows for path in row.point))
    names = ["trial", "value", "rung", "seeds", "state", "time", *(path.removeprefix("agent.") for path in paths)]
    yield "<table><tr>" + "".join(f"<th>{escape(name)}</th>" for name in names) + "</tr>"
    for row in report.rows:
        settings = [value(row.point[path]) if path in row.point else "" for path in paths]
        rung, known = "" if row.rung is None else str(row.rung), "" if row.value is None else f"{row.value:.1f}"
        cells = [str(row.number), known, rung, str(row.seeds), row.state, duration(row.seconds), *settings]
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</table>"
