"""Search: the leaderboard of each search, with the rung that each trial has reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable

from rldsl.monitor.palette import MARKS, Palette
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.session_index import SessionSnapshot
from rldsl.monitor.session_tree import STATE_ORDER, Summary, summarize
from rldsl.monitor.themes import palette_of
from rldsl.report.varied_settings import VariedSettings
from rldsl.report.words import amount, count, value


@dataclass(frozen=True)
class Entry:
    """A trial of a search."""

    experiment: str
    trial: str
    sessions: list[SessionSnapshot]
    summary: Summary
    rung: int | None
    rank: int = 0


def leaderboard(sessions: Iterable[SessionSnapshot]) -> list[Entry]:
    """The trials of every search, by rung, then by `episode_return_ma` averaged over seeds, best first."""
    trials: dict[tuple[str, str], list[SessionSnapshot]] = {}
    for session in sessions:
        if session.is_search:
            trials.setdefault((session.status.experiment, session.trial), []).append(session)
    entries = [_entry(experiment, trial, members) for (experiment, trial), members in trials.items()]
    ranks: Counter[str] = Counter()
    ranked = []
    for entry in sorted(entries, key=_sort_key):
        ranks[entry.experiment] += 1
        ranked.append(replace(entry, rank=ranks[entry.experiment]))
    return ranked


def _entry(experiment: str, trial: str, sessions: list[SessionSnapshot]) -> Entry:
    rungs = [session.rung for session in sessions if session.rung is not None]
    return Entry(experiment, trial, sessions, summarize(sessions), max(rungs, default=None))


def _sort_key(entry: Entry) -> tuple[str, bool, int, bool, float]:
    """A trial whose sessions all failed comes last."""
    score = entry.summary.episode_return_ma
    failed = entry.summary.states.keys() == {"failed"}
    return entry.experiment, failed, -(entry.rung or 0), score is None, -(score or 0.0)


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

    def compose_body(self) -> Iterable[Widget]:
        yield DataTable(id="board", cursor_type="row", zebra_stripes=True)

    def update_content(self) -> None:
        self.entries = leaderboard(self.app.sessions.values())
        table, palette = self.query_one(DataTable), palette_of(self.app)
        cursor = table.cursor_row
        paths = _paths(self.entries, self.app.index.varied)
        rungs = any(entry.rung is not None for entry in self.entries)
        table.clear(columns=True)
        table.add_columns(
            "#", "search", "return_ma", *(["rung"] if rungs else []), "seeds", "state", "frames", *paths.values()
        )
        for entry in self.entries:
            table.add_row(*self._cells(entry, list(paths), rungs, palette))
        table.move_cursor(row=cursor)
        searches = len({entry.experiment for entry in self.entries})
        none = "no sessions of a search yet: `rldsl search FILE` runs one"
        self.set_status(f"{count(len(self.entries), 'trial')} of {count(searches, 'search')}" if searches else none)

    def _cells(self, entry: Entry, paths: list[str], rungs: bool, palette: Palette) -> list[Text]:
        varied = self.app.index.varied.get(entry.experiment) or VariedSettings()
        settings = varied.settings(entry.trial)
        score = entry.summary.episode_return_ma
        style = palette.style("success", bold=True) if entry.rank == 1 else palette.style("foreground")
        return [
            Text(str(entry.rank), palette.dim, justify="right"),
            Text(entry.experiment),
            Text("-" if score is None else f"{score:.1f}", style, justify="right"),
            *([Text("-" if entry.rung is None else str(entry.rung), justify="right")] if rungs else []),
            Text(str(len(entry.sessions)), justify="right"),
            _states(entry.summary, palette),
            Text(amount(entry.summary.frame), palette.dim, justify="right"),
            *(Text(value(settings[path]) if path in settings else "", palette.style("primary")) for path in paths),
        ]

    def action_cursor(self, step: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + step)

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        self.app.focus_on([session.path for session in self.entries[event.cursor_row].sessions])
        self.app.action_show("curves")


def _paths(entries: Iterable[Entry], varied: Mapping[str, VariedSettings]) -> dict[str, str]:
    """The settings that are searched, each with the header of its column."""
    names = dict.fromkeys(entry.experiment for entry in entries)
    paths = dict.fromkeys(path for name in names if name in varied for path in varied[name].paths)
    return {path: path.removeprefix("agent.") for path in paths}


def _states(summary: Summary, palette: Palette) -> Text:
    text = Text()
    for state in sorted(summary.states, key=STATE_ORDER.__getitem__):
        text.append(f"{MARKS[state]}{summary.states[state]} ", palette.state(state))
    return text
