"""Search: the leaderboard of each search, with the rung that each trial has reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable

from rldsl.monitor.palette import MARKS, Palette
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.search_index import SearchSnapshot
from rldsl.monitor.session_index import SessionSnapshot
from rldsl.monitor.session_tree import Summary, summarize
from rldsl.monitor.themes import palette_of
from rldsl.report.words import amount, count, value
from rldsl.search.leaderboard import RankedTrial


@dataclass(frozen=True)
class Entry:
    """A trial of a search, and its sessions as far as they were read."""

    search: str
    rank: int
    rungs: int
    trial: RankedTrial
    sessions: Sequence[SessionSnapshot]


def entries(searches: Iterable[SearchSnapshot], sessions: Iterable[SessionSnapshot]) -> list[Entry]:
    """The trials of all searches, best first in each."""
    by_trial: dict[str, list[SessionSnapshot]] = {}
    for session in sessions:
        if session.is_search:
            by_trial.setdefault(session.trial, []).append(session)
    return [
        Entry(search.name, rank, len(search.frames), row, by_trial.get(row.id, []))
        for search in searches
        for rank, row in enumerate(search.rows, 1)
    ]


class SearchScreen(WatchScreen):
    """One table for all searches."""

    NAME = "search"
    AUTO_FOCUS = "DataTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor(1)", "Down", show=False),
        Binding("k", "cursor(-1)", "Up", show=False),
        Binding("enter", "", "Open"),
        Binding("escape", "app.show('runs')", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self._columns: list[str] = []
        self._shown: list[list[Text]] = []

    def compose_body(self) -> Iterable[Widget]:
        yield DataTable(id="board", cursor_type="row", zebra_stripes=True)

    def update_content(self) -> None:
        searches = list(self.app.searches.snapshots.values())
        self.entries = entries(searches, self.app.sessions.values())
        paths = _paths(self.entries)
        rungs = any(entry.rungs > 1 for entry in self.entries)
        names = ["#", "search", "trial", "value", *(["rung"] if rungs else []), "seeds", "state", "return_ma", "frames"]
        palette = palette_of(self.app)
        cells = [_cells(entry, list(paths), rungs, palette) for entry in self.entries]
        self._show([*names, *paths.values()], cells)
        self.set_status(_status(searches))

    def _show(self, columns: list[str], rows: list[list[Text]]) -> None:
        """Updates the cells that differ; the table is made anew only if it has other columns or fewer rows."""
        table = self.query_one(DataTable)
        if columns != self._columns or len(rows) < len(self._shown):
            cursor = table.cursor_row
            table.clear(columns=True)
            for name in columns:
                table.add_column(name, key=name)
            self._columns, self._shown = columns, []
            table.add_rows(rows)
            table.move_cursor(row=cursor)
        else:
            for index, row in enumerate(rows[: len(self._shown)]):
                for column, cell in enumerate(row):
                    if cell != self._shown[index][column]:
                        table.update_cell_at((index, column), cell, update_width=True)  # type: ignore[arg-type]
            table.add_rows(rows[len(self._shown) :])
        self._shown = rows

    def action_cursor(self, step: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + step)

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        if sessions := self.entries[event.cursor_row].sessions:
            self.app.focus_on([session.path for session in sessions])
            self.app.action_show("curves")


def _paths(shown: Iterable[Entry]) -> dict[str, str]:
    """The settings that are searched, each with the header of its column."""
    paths = dict.fromkeys(path for entry in shown for path in entry.trial.point)
    return {path: path.removeprefix("agent.") for path in paths}


def _cells(entry: Entry, paths: Sequence[str], rungs: bool, palette: Palette) -> list[Text]:
    row, summary = entry.trial, summarize(entry.sessions)
    style = palette.style("success", bold=True) if entry.rank == 1 else palette.style("foreground")
    return [
        Text(str(entry.rank), palette.dim, justify="right"),
        Text(entry.search),
        Text(str(row.number), justify="right"),
        _number(row.value, style),
        *([Text(_rung(row), justify="right")] if rungs else []),
        Text(str(row.seeds), justify="right"),
        Text(f"{MARKS[row.state]} {row.state}", palette.state(row.state)),
        _number(summary.episode_return_ma, palette.dim),
        Text(_frames(summary), palette.dim, justify="right"),
        *(_setting(row.point, path, palette) for path in paths),
    ]


def _number(number: float | None, style: object) -> Text:
    return Text("-" if number is None else f"{number:.1f}", style, justify="right")  # type: ignore[arg-type]


def _rung(row: RankedTrial) -> str:
    """The rung that it has reached, and the one that it is trained for."""
    reached = "-" if row.rung is None else str(row.rung)
    return reached if row.target == row.rung else f"{reached}→{row.target}"


def _frames(summary: Summary) -> str:
    return amount(summary.frame) if summary.frames else ""


def _setting(point: Mapping[str, object], path: str, palette: Palette) -> Text:
    return Text(value(point[path]) if path in point else "", palette.style("primary"))


def _status(searches: Sequence[SearchSnapshot]) -> str:
    if not searches:
        return "no search yet: `rldsl search FILE` runs one"
    trials, running = sum(len(search.rows) for search in searches), sum(search.running for search in searches)
    shown = f"{count(trials, 'trial')} of {len(searches)} search{'' if len(searches) == 1 else 'es'}"
    return f"{shown}, {running} running" if running else shown
