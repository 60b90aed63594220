"""Runs: the tree of experiments, trials and sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from rldsl.monitor.filter import FilterError, parse
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.session_tree import ORDERS
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.cells import RenderContext, as_text
from rldsl.monitor.widgets.tree_table import TreeTable
from rldsl.report.words import count


class RunsScreen(WatchScreen):
    """The default screen."""

    NAME = "runs"
    AUTO_FOCUS = "TreeTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("o", "order", "Sort"),
        Binding("O", "reverse", "Reverse", show=False),
        Binding("L", "fold_all(False)", "Unfold all", show=False),
        Binding("H", "fold_all(True)", "Fold all", show=False),
        Binding("u", "unselect", "Unselect", show=False),
        Binding("escape", "leave", "Back", show=False),
    ]

    def compose_body(self) -> Iterable[Widget]:
        yield TreeTable(clock=self.app.now, id="tree")
        yield Input(placeholder="status:failed env:Hopper algo:ppo -seed:1 any word", id="filter", compact=True)

    @property
    def table(self) -> TreeTable:
        return self.query_one(TreeTable)

    def update_content(self) -> None:
        app = self.app
        self.table.empty = app.empty_message
        self.table.show(app.session_tree.rows(app.sessions, app.index.varied), app.selected)
        self._update_status()

    def tick(self) -> None:
        """Redraws the ages, which grow without any change on disk."""
        self.table.refresh()

    @on(TreeTable.Folded)
    def _fold(self, event: TreeTable.Folded) -> None:
        self.app.session_tree.folded[event.row.key] = event.folded
        self.update_content()

    @on(TreeTable.Selected)
    def _select(self, event: TreeTable.Selected) -> None:
        paths = {session.path for session in event.row.sessions}
        self.app.selected = self.app.selected - paths if paths <= self.app.selected else self.app.selected | paths
        self.update_content()

    @on(TreeTable.Opened)
    def _open(self, event: TreeTable.Opened) -> None:
        self.app.focus_on([session.path for session in event.row.sessions])
        self.app.action_show("detail")

    @on(TreeTable.Moved)
    def _moved(self) -> None:
        self._update_status()

    def action_order(self) -> None:
        names = list(ORDERS)
        tree = self.app.session_tree
        tree.order = names[(names.index(tree.order) + 1) % len(names)]
        self.update_content()

    def action_reverse(self) -> None:
        self.app.session_tree.reverse = not self.app.session_tree.reverse
        self.update_content()

    def action_fold_all(self, folded: bool) -> None:
        sessions = self.app.sessions.values()
        experiments = {session.status.experiment for session in sessions}
        trials = {f"{session.status.experiment} {session.trial}" for session in sessions}
        self.app.session_tree.folded = dict.fromkeys(experiments | trials, folded)
        self.update_content()

    def action_unselect(self) -> None:
        self.app.selected = set()
        self.update_content()

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.add_class("-shown")
        box.focus()

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        """Filters while the user types; a query with an error is reported and leaves the tree as it was."""
        try:
            self.app.session_tree.filter = parse(event.value)
        except FilterError as error:
            self.set_status(Text(str(error), palette_of(self.app).style("error")))
            return
        self.update_content()

    @on(Input.Submitted, "#filter")
    def _done(self) -> None:
        self._close_filter()

    def action_leave(self) -> None:
        """Clears the filter first, then the selection."""
        box = self.query_one("#filter", Input)
        if box.value or box.has_focus:
            box.value = ""
            self._close_filter()
        else:
            self.action_unselect()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("-shown")
        self.table.focus()
        self._update_status()

    def _update_status(self) -> None:
        """Shows the row under the cursor, including columns that do not fit, and what the tree displays."""
        app, palette = self.app, palette_of(self.app)
        text = Text(no_wrap=True, overflow="ellipsis")
        row = self.table.current_row
        app.under_cursor = [session.path for session in row.sessions] if row else []
        if app.refresh_error:
            text.append(f"{app.refresh_error}  ", palette.style("error"))
        if row is not None and not row.group:
            status = row.sessions[0].status
            text.append(status.session, palette.style("foreground", bold=True))
            text.append(f"  {status.note}  " if status.note else "  ", palette.state(status.state))
        context = RenderContext(palette, app.now())
        if row is not None and (more := as_text(row, self.table.hidden_columns, context)):
            text.append(f"{more}  ", palette.style("foreground"))
        text.append("  ".join(self._view_state()), palette.dim)
        self.set_status(text)

    def _view_state(self) -> list[str]:
        """How many sessions are shown and selected, the filter, the order and the run directory."""
        app, tree = self.app, self.app.session_tree
        shown = len({session.path for row in self.table.rows for session in row.sessions})
        total = f"{shown:,} of {count(len(app.sessions), 'session')}" if tree.filter else count(shown, "session")
        reading = [f"reading {app.index.total:,}"] if app.index.unread else []
        selected = [f"{len(app.selected):,} selected"] if app.selected else []
        query = [f"filter: {self.query_one('#filter', Input).value}"] if tree.filter else []
        order = tree.order + (" reversed" if tree.reverse else "")
        return [*reading, total, *selected, *query, f"by {order}", str(app.runs)]
