"""The bar at the top, with the screens and the totals, and the status line above the footer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from rldsl.monitor.palette import MARKS, Palette
from rldsl.monitor.session_tree import STATE_ORDER
from rldsl.report.words import amount

SCREENS = {
    "runs": "Runs",
    "curves": "Curves",
    "log": "Log",
    "detail": "Detail",
    "search": "Search",
    "queue": "Queue",
    "machine": "Machine",
}
"""The screens in the order of their keys, 1 to 7."""


class TopBar(Horizontal):
    """The names of the screens, which can be clicked, and the number of sessions in each state."""

    def __init__(self, current: str) -> None:
        super().__init__()
        self.current = current

    def compose(self) -> ComposeResult:
        for number, (name, title) in enumerate(SCREENS.items(), 1):
            tab = Static(f"[dim]{number}[/] [@click=app.show('{name}')]{title}[/]", classes="tab")
            tab.set_class(name == self.current, "-current")
            yield tab
        yield Static(id="totals")

    def show(self, states: Iterable[str], palette: Palette) -> None:
        """Updates the number of sessions in each state."""
        counts = Counter(states)
        text = Text()
        for state in sorted(counts, key=STATE_ORDER.__getitem__):
            text.append(f" {MARKS[state]}{amount(counts[state])}", palette.state(state))
        self.query_one("#totals", Static).update(text)


class StatusLine(Static):
    """One line about what the screen shows."""
