"""Log: the end of a session's log, or its journal; followed and searchable, also of several sessions at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from rldsl.monitor.screens.session_view import SessionView
from rldsl.monitor.session_log import MergedLog
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.log_view import LogView
from rldsl.report.words import count

READ_SECONDS = 0.5
MAX_MERGED = 32


class LogScreen(SessionView):
    """Shows the log of a session, or with `a` those of all sessions of its trial or of the chosen ones."""

    NAME = "log"
    AUTO_FOCUS = "LogView"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "follow", "Follow"),
        Binding("a", "merge", "All seeds"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "next(True)", "Next match", show=False),
        Binding("N", "next(False)", "Previous match", show=False),
        Binding("escape", "leave", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.merged = False
        self.log_shown: MergedLog | None = None
        self._reading = False

    def compose_body(self) -> Iterable[Widget]:
        yield LogView(id="lines")
        yield Input(placeholder="find in the log", id="find", compact=True)

    def on_mount(self) -> None:
        self.set_interval(READ_SECONDS, self._read_if_shown)

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    def update_content(self) -> None:
        names = {one.path: f"{one.status.session}" for one in self._sessions()}
        if self.log_shown is None or names != self.log_shown.names:
            self.log_shown = MergedLog(self.app.runs, names)
            self.view.clear()
        self._read_if_shown()
        self._update_status()

    def _sessions(self) -> list[SessionSnapshot]:
        """The sessions whose lines are shown."""
        shown = self.chosen()
        if not self.merged or not shown:
            return shown
        opened = self.app.in_order(self.app.opened)
        if len(opened) == 1:
            every = self.app.sessions.values()
            opened = self.app.in_order(one.path for one in every if one.trial == shown[0].trial)
        return opened[:MAX_MERGED]

    def _read_if_shown(self) -> None:
        if self.log_shown is not None and self.is_current and not self._reading:
            self._reading = True
            self._read(self.log_shown)

    @work(thread=True, group="log", exit_on_error=False)
    def _read(self, log: MergedLog) -> None:
        """Reads in a thread, one at a time: storage can be slow."""
        try:
            restart, lines = log.read_new()
        finally:
            self._reading = False
        if lines or restart:
            self.app.call_from_thread(self._add, log, restart, lines)

    def _add(self, log: MergedLog, restart: bool, lines: list[str]) -> None:
        if log is not self.log_shown:  # the user has switched to another session
            return
        if restart:
            self.view.clear()
        self.view.add(lines)
        self._update_status()

    def action_merge(self) -> None:
        self.merged = not self.merged
        self.update_content()

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
        palette, view, log = palette_of(self.app), self.view, self.log_shown
        text = Text(no_wrap=True, overflow="ellipsis")
        if log is None or not log.names:
            text.append("no session is chosen", palette.dim)
        else:
            name = next(iter(log.names.values())) if len(log.names) == 1 else count(len(log.names), "session")
            text.append(name, "bold")
            kind = "  journal, the log is empty" if log.shows_journal else ""
            state = "following" if view.follow else "not following (f: follow)"
            matches = f"  {count(view.match_count, 'line')} with {view.query_text!r}" if view.query_text else ""
            text.append(f"{kind}  {count(len(view.lines), 'line')}, {state}{matches}", palette.dim)
        self.set_status(text)
