"""Tells the user about alerts: in the monitor, by the terminal's bell and notification (OSC 9), and to a URL."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import Literal

from textual import work
from textual.app import App

from rldsl.launch.notify import post_message
from rldsl.monitor.alerts import GOOD, Alert

MAX_EVENTS = 500
MAX_AT_ONCE = 3
"""Alerts that are announced at the same moment; of more, only the number."""


class Notifications(App[None]):
    """The alerts so far, and how they are announced."""

    def __init__(self, notify_url: str | None = None) -> None:
        super().__init__()
        self.alerts: deque[Alert] = deque(maxlen=MAX_EVENTS)
        self.notify_url = notify_url

    def announce(self, alerts: Iterable[Alert]) -> None:
        """Keeps alerts, shows them, rings the bell and sends them."""
        new = list(alerts)
        if not new:
            return
        self.alerts.extend(new)
        for alert in new[:MAX_AT_ONCE]:
            severity: Literal["information", "error"] = "information" if alert.kind in GOOD else "error"
            self.notify(alert.line, title=alert.kind, severity=severity, markup=False, timeout=10)
        if len(new) > MAX_AT_ONCE:
            self.notify(f"and {len(new) - MAX_AT_ONCE} more: E shows all events", markup=False)
        text = "; ".join(alert.line for alert in new[:MAX_AT_ONCE])
        text += f" and {len(new) - MAX_AT_ONCE} more" if len(new) > MAX_AT_ONCE else ""
        self.bell()
        self.write_terminal(desktop_notification(text))
        if self.notify_url:
            self.post(self.notify_url, text)

    def write_terminal(self, sequence: str) -> None:
        """Sends an escape sequence to the terminal."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @work(thread=True, group="post", exit_on_error=False)
    def post(self, url: str, text: str) -> None:
        """Sends a text to a URL, in a thread."""
        if (problem := post_message(url, text, "rldsl watch")) is not None:
            self.call_from_thread(self.notify, problem, severity="warning", markup=False)


def desktop_notification(text: str) -> str:
    """OSC 9, which iTerm2, WezTerm, kitty, Windows Terminal and others show as a notification."""
    return "\x1b]9;" + re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text)[:200] + "\x07"
