"""The base class of the screens that show one session: `[` and `]` switch to the one before and after it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.snapshot import SessionSnapshot


class SessionView(WatchScreen):
    """Shows one of the opened sessions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "switch(-1)", "Previous", key_display="["),
        Binding("right_square_bracket", "switch(1)", "Next", key_display="]"),
    ]

    def chosen(self) -> list[SessionSnapshot]:
        """The session that is shown."""
        opened = super().chosen()
        return [one for one in opened if one.path == self.app.viewed] or opened[:1]

    def action_switch(self, step: int) -> None:
        """Shows the next of the opened sessions; if only one is open, the next one of the tree."""
        shown = self.chosen()
        if not shown:
            return
        opened = [session.path for session in super().chosen()]
        paths = opened if len(opened) > 1 else self._of_tree()
        at = paths.index(shown[0].path) if shown[0].path in paths else -step
        path = paths[(at + step) % len(paths)] if paths else shown[0].path
        self.app.viewed = path
        if len(opened) == 1:
            self.app.opened = [path]
        self.update_content()

    def _of_tree(self) -> list[str]:
        rows = self.app.session_tree.rows(self.app.sessions, self.app.index.varied)
        leaves = (row for row in rows if not (row.group and row.open))
        return list(dict.fromkeys(session.path for row in leaves for session in row.sessions))
