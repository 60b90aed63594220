"""The bar at the top, with the screens and the totals, and the status line above the footer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from rldsl.monitor.alerts import GOOD, Alert
from rldsl.monitor.palette import Palette, attention, mark
from rldsl.monitor.widgets.painted import TextLines
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
        yield TextLines(id="totals")

    def show(self, states: Iterable[str], palette: Palette) -> None:
        """Updates the number of sessions in each state."""
        counts = Counter(states)
        text = Text()
        for state in sorted(counts, key=attention):
            text.append(f" {mark(state)}{amount(counts[state])}", palette.state(state))
        self.query_one("#totals", TextLines).show(text)


class EventsPane(TextLines):
    """The newest alerts, the newest at the bottom."""

    LINES = 7

    def show_alerts(self, alerts: Sequence[Alert], palette: Palette) -> None:
        """Shows the last few of these."""
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"Events ({len(alerts)})" if alerts else "Events: none yet", palette.style("primary", bold=True))
        for alert in list(alerts)[-self.LINES :]:
            role = "success" if alert.kind in GOOD else "error"
            text.append(f"\n{time.strftime('%H:%M:%S', time.localtime(alert.time))} ", palette.dim)
            text.append(f"{alert.kind:<15} ", palette.style(role, bold=True))
            text.append(alert.name + (f"  {alert.text}" if alert.text else ""))
        self.show(text)


class StatusLine(TextLines):
    """One line about what the screen shows."""
