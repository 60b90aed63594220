"""Log: the end of a session's log file, followed and searchable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from rldsl.monitor.log_tail import LogTail
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.log_view import LogView
from rldsl.report.words import count

READ_SECONDS = 0.5


class LogScreen(WatchScreen):
    """Shows the log of the first of the chosen sessions."""

    NAME = "log"
    AUTO_FOCUS = "LogView"
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
        yield LogView(id="lines")
        yield Input(placeholder="find in the log", id="find", compact=True)

    def on_mount(self) -> None:
        self.set_interval(READ_SECONDS, self._read)

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    def update_content(self) -> None:
        chosen = self.app.chosen()
        path = chosen[0].path if chosen else None
        if path != self.path:
            self.path = path
            self.tail = LogTail(self.app.runs / path / "log.txt") if path else None
            self.view.clear()
        self._read()
        self._update_status()

    def _read(self) -> None:
        if self.tail is None or not self.is_current:
            return
        lines = self.tail.read_new()
        if lines:
            self.view.add(lines)
            self._update_status()

    @on(LogView.Moved)
    def _moved(self) -> None:
        self._update_status()

    def action_follow(self) -> None:
        self.view.follow = not self.view.follow
        self.view.add(())
        self._update_status()

    def action_search(self) -> None:
        box = self.query_one("#find", Input)
        box.add_class("-shown")
        box.focus()

    @on(Input.Changed, "#find")
    def _typed(self, event: Input.Changed) -> None:
        self.view.find(event.value, forward=False)
        self._update_status()

    @on(Input.Submitted, "#find")
    def _done(self) -> None:
        self.query_one("#find", Input).remove_class("-shown")
        self.view.focus()

    def action_next(self, forward: bool) -> None:
        self.view.find(self.view.query_text, forward=forward, again=True)
        self._update_status()

    def action_leave(self) -> None:
        """Ends the search first, then leaves the screen."""
        box = self.query_one("#find", Input)
        if box.value or box.has_focus:
            box.value = ""
            self._done()
        else:
            self.app.action_show("runs")

    def _update_status(self) -> None:
        palette, view = palette_of(self.app), self.view
        text = Text(no_wrap=True, overflow="ellipsis")
        if self.path is None:
            text.append("no session is chosen", palette.dim)
        else:
            session = self.app.sessions.get(self.path)
            text.append(session.status.session if session else self.path, "bold")
            state = "following" if view.follow else "not following (f: follow)"
            matches = f"  {count(view.match_count, 'line')} with {view.query_text!r}" if view.query_text else ""
            text.append(f"  {count(len(view.lines), 'line')}, {state}{matches}", palette.dim)
        self.set_status(text)
