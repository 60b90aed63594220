"""The line at the top, with the screens and the totals, and the one above the keys, with what is going on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from rldsl.monitor.outline import URGENCY
from rldsl.monitor.palette import MARKS, Palette
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
    """The names of the screens, which can be clicked, and how many sessions are in which state."""

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
        """How many sessions are in each state."""
        counted = Counter(states)
        text = Text()
        for state in sorted(counted, key=URGENCY.__getitem__):
            text.append(f" {MARKS[state]}{amount(counted[state])}", palette.state(state))
        self.query_one("#totals", Static).update(text)


class StatusLine(Static):
    """A sentence about what is shown."""
