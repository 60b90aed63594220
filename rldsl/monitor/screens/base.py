"""What the screens share: the line at the top, the line of what is going on, the keys at the bottom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult, SystemCommand
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.bars import StatusLine, TopBar

if TYPE_CHECKING:
    from rldsl.monitor.app import WatchApp


class WatchScreen(Screen[None]):
    """A screen over the facts of the app; `update_facts` is called whenever they have changed."""

    NAME: ClassVar[str]
    HORIZONTAL_BREAKPOINTS: ClassVar = [(0, "-narrow"), (110, "-wide")]
    app: WatchApp

    def compose(self) -> ComposeResult:
        yield TopBar(self.NAME)
        yield from self.compose_body()
        yield StatusLine(id="status")
        yield Footer(compact=True, show_command_palette=False)

    def compose_body(self) -> Iterable[Widget]:
        """What is between the bars."""
        return ()

    def on_screen_resume(self) -> None:
        self.refresh_facts()

    def refresh_facts(self) -> None:
        """Shows the facts as they are now."""
        if not self.is_mounted:
            return
        states = (one.status.state for one in self.app.seen.values())
        self.query_one(TopBar).show(states, palette_of(self.app))
        self.update_facts()

    def update_facts(self) -> None:
        """Shows what this screen is for."""

    def commands(self) -> Iterable[SystemCommand]:
        """What the command palette offers on this screen alone."""
        return ()

    def say(self, text: str | Text) -> None:
        """Puts a sentence into the line above the keys."""
        self.query_one("#status", StatusLine).update(Text(text) if isinstance(text, str) else text)
