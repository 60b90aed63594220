"""The base class of the screens: the top bar, the status line and the footer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult, SystemCommand
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.bars import EventsPane, StatusLine, TopBar

if TYPE_CHECKING:
    from rldsl.monitor.app import WatchApp


class WatchScreen(Screen[None]):
    """A screen that shows sessions; `update_content` is called whenever sessions have changed."""

    NAME: ClassVar[str]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (160, "-master")]  # noqa: RUF012 (Textual declares it without ClassVar)
    app: WatchApp

    def compose(self) -> ComposeResult:
        yield TopBar(self.NAME)
        yield from self.compose_body()
        yield EventsPane(id="events")
        yield StatusLine(id="status")
        yield Footer(compact=True, show_command_palette=False)

    def compose_body(self) -> Iterable[Widget]:
        """The widgets between the top bar and the status line."""
        return ()

    def on_screen_resume(self) -> None:
        self.refresh_content()

    def chosen(self) -> list[SessionSnapshot]:
        """The sessions that the user sees as chosen on this screen: commands apply to them and to no others."""
        return self.app.in_order(self.app.opened)

    def tick(self) -> None:
        """Redraws what changes with time alone, such as ages."""

    def refresh_content(self) -> None:
        """Updates the totals and the content."""
        if not self.is_mounted:
            return
        states = (session.state for session in self.app.sessions.values())
        self.query_one(TopBar).show(states, palette_of(self.app))
        events = self.query_one(EventsPane)
        events.display = self.app.show_events
        events.show_alerts(self.app.alerts, palette_of(self.app))
        self.update_content()

    def update_content(self) -> None:
        """Shows the current sessions."""

    def commands(self) -> Iterable[SystemCommand]:
        """Entries of the command palette for this screen only."""
        return ()

    def set_status(self, text: str | Text) -> None:
        """Sets the text of the status line."""
        self.query_one("#status", StatusLine).show(Text(text) if isinstance(text, str) else text)
