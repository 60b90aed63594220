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

from rldsl.monitor.palette import Palette, mark
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.search_index import SearchSnapshot
from rldsl.monitor.session_tree import Summary, summarize
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.keyed_table import KeyedTable
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
        Binding("enter", "", "Open"),
        Binding("escape", "app.show('runs')", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[str, Entry] = {}

    def compose_body(self) -> Iterable[Widget]:
        yield KeyedTable(id="board")

    @property
    def table(self) -> KeyedTable:
        return self.query_one(KeyedTable)

    def chosen(self) -> list[SessionSnapshot]:
        """The sessions of the selected trials of this screen, otherwise of the trial under the cursor."""
        shown = {session.path for entry in self.entries.values() for session in entry.sessions}
        entry = self.entries.get(self.table.current_key or "")
        under_cursor = [session.path for session in entry.sessions] if entry else []
        return self.app.in_order(self.app.selected & shown or under_cursor)

    def update_content(self) -> None:
        searches = list(self.app.searches.snapshots.values())
        found = entries(searches, self.app.sessions.values())
        self.entries = {f"{entry.search} {entry.trial.number}": entry for entry in found}
        paths = _paths(found)
        rungs = any(entry.rungs > 1 for entry in found)
        names = ["#", "search", "trial", "value", *(["rung"] if rungs else []), "seeds", "state", "return_ma", "frames"]
        palette = palette_of(self.app)
        rows = [(key, self._cells(entry, list(paths), rungs, palette)) for key, entry in self.entries.items()]
        self.table.show([*names, *paths.values()], rows)
        self._update_status()

    def _cells(self, entry: Entry, paths: Sequence[str], rungs: bool, palette: Palette) -> list[Text]:
        paths_shown = {session.path for session in entry.sessions}
        selected = bool(paths_shown) and paths_shown <= self.app.selected
        return _cells(entry, paths, rungs, palette, selected)

    def _update_status(self) -> None:
        searches = list(self.app.searches.snapshots.values())
        selected = len(self.app.selected & {one.path for entry in self.entries.values() for one in entry.sessions})
        chosen = f"; {selected} selected" if selected else ""
        self.set_status(_status(searches) + chosen)

    @on(KeyedTable.Toggled)
    def _toggle(self, event: KeyedTable.Toggled) -> None:
        self.app.toggle(session.path for session in self.entries[event.key].sessions)

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        entry = list(self.entries.values())[event.cursor_row]
        if entry.sessions:
            self.app.focus_on([session.path for session in entry.sessions])
            self.app.open_screen("curves")


def _paths(shown: Iterable[Entry]) -> dict[str, str]:
    """The settings that are searched, each with the header of its column."""
    paths = dict.fromkeys(path for entry in shown for path in entry.trial.point)
    return {path: path.removeprefix("agent.") for path in paths}


def _cells(entry: Entry, paths: Sequence[str], rungs: bool, palette: Palette, selected: bool) -> list[Text]:
    row, summary = entry.trial, summarize(entry.sessions)
    style = palette.style("success", bold=True) if entry.rank == 1 else palette.style("foreground")
    return [
        Text(f"{'◆ ' if selected else ''}{entry.rank}", palette.dim, justify="right"),
        Text(entry.search),
        Text(str(row.number), justify="right"),
        _number(row.value, style),
        *([Text(_rung(row), justify="right")] if rungs else []),
        Text(str(row.seeds), justify="right"),
        Text(f"{mark(row.state)} {row.state}", palette.state(row.state)),
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
