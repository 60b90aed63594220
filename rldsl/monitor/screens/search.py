"""Search: the leaderboard of each search, and the rung that each trial has reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import DataTable

from rldsl.monitor.facts import Seen
from rldsl.monitor.families import Family
from rldsl.monitor.outline import URGENCY, Figures, figures
from rldsl.monitor.palette import MARKS, Palette
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.report.words import amount, count, value


@dataclass(frozen=True)
class Entry:
    """A trial of a search."""

    experiment: str
    trial: str
    sessions: list[Seen]
    figures: Figures
    rung: int | None
    rank: int = 0


def leaderboard(seen: Iterable[Seen]) -> list[Entry]:
    """The trials of every search, best first by the mean return of their seeds, the highest rungs before lower ones."""
    trials: dict[tuple[str, str], list[Seen]] = {}
    for one in seen:
        if one.searching:
            trials.setdefault((one.status.experiment, one.trial), []).append(one)
    entries = [_entry(*key, sessions) for key, sessions in trials.items()]
    ranked = sorted(entries, key=_key)
    ranks: dict[str, int] = {}
    placed = []
    for one in ranked:
        ranks[one.experiment] = ranks.get(one.experiment, 0) + 1
        placed.append(Entry(one.experiment, one.trial, one.sessions, one.figures, one.rung, ranks[one.experiment]))
    return placed


def _entry(experiment: str, trial: str, sessions: list[Seen]) -> Entry:
    rungs = [one.rung for one in sessions if one.rung is not None]
    return Entry(experiment, trial, sessions, figures(sessions), max(rungs, default=None))


def _key(one: Entry) -> tuple[str, bool, int, bool, float]:
    """A trial of which all failed is no score, and comes last."""
    score = one.figures.episode_return
    failed = one.figures.states.keys() == {"failed"}
    return one.experiment, failed, -(one.rung or 0), score is None, -(score or 0.0)


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

    def update_facts(self) -> None:
        self.entries = leaderboard(self.app.seen.values())
        table, palette = self.query_one(DataTable), palette_of(self.app)
        row = table.cursor_row
        paths = _paths(self.entries, self.app.index.families)
        rungs = any(one.rung is not None for one in self.entries)
        table.clear(columns=True)
        table.add_columns(
            "#", "search", "return", *(["rung"] if rungs else []), "seeds", "state", "frames", *paths.values()
        )
        for one in self.entries:
            table.add_row(*self._cells(one, list(paths), rungs, palette))
        table.move_cursor(row=row)
        searches = len({one.experiment for one in self.entries})
        none = "no search here: a search has seeds from 1,000,000 on, `rldsl search FILE` runs one"
        self.say(f"{count(len(self.entries), 'trial')} of {count(searches, 'search')}" if searches else none)

    def _cells(self, one: Entry, paths: list[str], rungs: bool, palette: Palette) -> list[Text]:
        family = self.app.index.families.get(one.experiment) or Family()
        settings = family.settings(one.trial)
        score = one.figures.episode_return
        best = palette.style("success", bold=True) if one.rank == 1 else palette.style("foreground")
        return [
            Text(str(one.rank), palette.dim, justify="right"),
            Text(one.experiment),
            Text("-" if score is None else f"{score:.1f}", best, justify="right"),
            *([Text("-" if one.rung is None else str(one.rung), justify="right")] if rungs else []),
            Text(str(len(one.sessions)), justify="right"),
            _states(one.figures, palette),
            Text(amount(one.figures.frame), palette.dim, justify="right"),
            *(Text(value(settings[path]) if path in settings else "", palette.style("primary")) for path in paths),
        ]

    def action_cursor(self, by: int) -> None:
        table = self.query_one(DataTable)
        table.move_cursor(row=table.cursor_row + by)

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        self.app.focus_on([one.path for one in self.entries[event.cursor_row].sessions])
        self.app.action_show("curves")


def _paths(entries: Iterable[Entry], families: Mapping[str, Family]) -> dict[str, str]:
    """The settings that are searched, with the headings of their columns."""
    names = dict.fromkeys(one.experiment for one in entries)
    paths = dict.fromkeys(path for name in names if name in families for path in families[name].paths)
    return {path: path.removeprefix("agent.") for path in paths}


def _states(one: Figures, palette: Palette) -> Text:
    text = Text()
    for state in sorted(one.states, key=URGENCY.__getitem__):
        text.append(f"{MARKS[state]}{one.states[state]} ", palette.state(state))
    return text
