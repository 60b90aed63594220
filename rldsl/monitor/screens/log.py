"""Log: the end of what a session's process printed; follows it, finds words in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from rldsl.monitor.logs import LogTail
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.lines import Lines
from rldsl.report.words import count

EVERY = 0.5


class LogScreen(WatchScreen):
    """The log of the first chosen session."""

    NAME = "log"
    AUTO_FOCUS = "Lines"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "follow", "Follow"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "next(True)", "Next"),
        Binding("N", "next(False)", "Previous", show=False),
        Binding("escape", "leave", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.path: str | None = None
        self.tail: LogTail | None = None

    def compose_body(self) -> Iterable[Widget]:
        yield Lines(id="lines")
        yield Input(placeholder="find in the log", id="needle", compact=True)

    def on_mount(self) -> None:
        self.set_interval(EVERY, self._read)

    @property
    def lines(self) -> Lines:
        return self.query_one(Lines)

    def update_facts(self) -> None:
        chosen = self.app.chosen()
        path = chosen[0].path if chosen else None
        if path != self.path:
            self.path = path
            self.tail = LogTail(self.app.runs / path / "log.txt") if path else None
            self.lines.clear()
        self._read()
        self._tell()

    def _read(self) -> None:
        if self.tail is None or not self.is_current:
            return
        lines = self.tail.read_new()
        if lines:
            self.lines.add(lines)
            self._tell()

    @on(Lines.Moved)
    def _moved(self) -> None:
        self._tell()

    def action_follow(self) -> None:
        self.lines.follow = not self.lines.follow
        self.lines.add(())
        self._tell()

    def action_search(self) -> None:
        box = self.query_one("#needle", Input)
        box.add_class("-shown")
        box.focus()

    @on(Input.Changed, "#needle")
    def _typed(self, event: Input.Changed) -> None:
        self.lines.find(event.value, forward=False)
        self._tell()

    @on(Input.Submitted, "#needle")
    def _done(self) -> None:
        self.query_one("#needle", Input).remove_class("-shown")
        self.lines.focus()

    def action_next(self, forward: bool) -> None:
        self.lines.find(self.lines.needle, forward=forward, again=True)
        self._tell()

    def action_leave(self) -> None:
        """First the search goes, then the screen."""
        box = self.query_one("#needle", Input)
        if box.value or box.has_focus:
            box.value = ""
            self._done()
        else:
            self.app.action_show("runs")

    def _tell(self) -> None:
        palette, lines = palette_of(self.app), self.lines
        text = Text(no_wrap=True, overflow="ellipsis")
        if self.path is None:
            text.append("no session is chosen", palette.dim)
        else:
            text.append(self.app.seen[self.path].status.session if self.path in self.app.seen else self.path, "bold")
            state = "following" if lines.follow else "not following: f or G does"
            found = f"  {count(lines.matches, 'line')} with {lines.needle!r}" if lines.needle else ""
            text.append(f"  {count(len(lines.lines), 'line')}, {state}{found}", palette.dim)
        self.say(text)
