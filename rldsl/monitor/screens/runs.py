"""Runs: the tree of experiments, trials and sessions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from rldsl.monitor.filter import FilterError, parse
from rldsl.monitor.known_names import column_names, known_names
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.screens.pickers import Pick, PickMany, Prompt
from rldsl.monitor.session_tree import ORDERS
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.cells import COLUMNS, DEFAULT_COLUMNS, RenderContext, as_text
from rldsl.monitor.widgets.tree_table import TreeTable
from rldsl.report.words import count

SIDE_FROM = 160
"""Columns of a terminal from which on the row under the cursor is shown beside the tree."""


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
        Binding("p", "pin", "Pin", show=False),
        Binding("C", "columns", "Columns", show=False),
        Binding("S", "save_filter", "Save filter", show=False),
        Binding("F", "pick_filter", "Filters", show=False),
        Binding("escape", "leave", "Back", show=False),
    ]

    def compose_body(self) -> Iterable[Widget]:
        yield Horizontal(TreeTable(clock=self.app.now, id="tree"), id="runs")
        hint = "status:failed algo:ppo return>400 gamma>=.99 age<1h -seed:1 /regex/ or word"
        yield Input(self.app.filter_text, placeholder=hint, id="filter", compact=True)

    def on_mount(self) -> None:
        self.table.session_tree, self.table.trends = self.app.session_tree, self.app.trends
        self.table.choose_columns(self.app.columns)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_side)

    def _show_side(self) -> None:
        """Shows what is under the cursor beside the tree, if there is room. Its charts need numpy: made when needed."""
        if self.size.width < SIDE_FROM or not self.is_mounted:
            return
        from rldsl.monitor.widgets.side_panel import SidePanel

        panel = next(iter(self.query(SidePanel)), None)
        if panel is None:
            self.query_one("#runs").mount(SidePanel(id="side"))
            self.call_after_refresh(self._show_side)
        else:
            panel.show_row(self.table.current_row)

    @property
    def table(self) -> TreeTable:
        return self.query_one(TreeTable)

    def chosen(self) -> list[SessionSnapshot]:
        """The selected sessions that the filter does not hide, otherwise those under the cursor."""
        row = self.table.current_row
        under_cursor = [session.path for session in row.sessions] if row else []
        return self.app.in_order(self.app.selected & self.app.session_tree.matched or under_cursor)

    def update_content(self) -> None:
        app = self.app
        self.table.empty = app.empty_message
        self.table.show(app.session_tree.rows(app.sessions, app.index.varied), app.selected)
        self._update_status()
        self._show_side()

    def tick(self) -> None:
        """Redraws the ages, which grow without any change on disk."""
        self.table.repaint()

    @on(TreeTable.Folded)
    def _fold(self, event: TreeTable.Folded) -> None:
        self.app.session_tree.fold(event.row.key, event.folded)
        self.update_content()

    @on(TreeTable.Selected)
    def _select(self, event: TreeTable.Selected) -> None:
        self.app.toggle(session.path for session in event.row.sessions)

    @on(TreeTable.Opened)
    def _open(self, event: TreeTable.Opened) -> None:
        self.app.focus_on([session.path for session in event.row.sessions])
        self.app.open_screen("detail")

    @on(TreeTable.Moved)
    def _moved(self) -> None:
        self._update_status()
        self._show_side()

    def action_order(self) -> None:
        names = list(ORDERS)
        tree = self.app.session_tree
        tree.order = names[(names.index(tree.order) + 1) % len(names)] if tree.order in names else names[0]
        self.update_content()

    def action_reverse(self) -> None:
        self.app.session_tree.reverse = not self.app.session_tree.reverse
        self.update_content()

    def action_fold_all(self, folded: bool) -> None:
        self.app.session_tree.fold_all(folded)
        self.update_content()

    @on(TreeTable.Sorted)
    def _sort(self, event: TreeTable.Sorted) -> None:
        """A click on a header sorts by its column, another one reverses."""
        tree = self.app.session_tree
        order = {"backend": "name", "frames": "frame", "trend": "return"}.get(event.column, event.column)
        tree.reverse = not tree.reverse if tree.order == order else False
        tree.order = order
        self.update_content()

    def action_pin(self) -> None:
        self.app.pin(session.path for session in self.chosen())

    def action_columns(self) -> None:
        """Asks which columns are shown."""
        shown = [column.name for column in self.table.columns]
        names = dict.fromkeys([*(column.name for column in COLUMNS), *shown, *sorted(column_names(self.app))])
        self.app.push_screen(PickMany("Columns", names, shown), self._choose_columns)

    def _choose_columns(self, names: list[str] | None) -> None:
        if names is not None:
            usual = [column.name for column in DEFAULT_COLUMNS]
            self.app.columns = None if names == usual else names
            self.table.choose_columns(self.app.columns)

    def action_save_filter(self) -> None:
        """Keeps the present filter under a name."""
        if not self.app.filter_text:
            self.app.notify("there is no filter to save: / sets one")
            return
        self.app.push_screen(Prompt(f"Save the filter {self.app.filter_text!r} as", hint="name"), self._save_filter)

    def _save_filter(self, name: str | None) -> None:
        if name and name.strip():
            self.app.saved_filters[name.strip()] = self.app.filter_text
            self.app.save_view()

    def action_pick_filter(self) -> None:
        """Asks which of the saved filters to apply."""
        if not self.app.saved_filters:
            self.app.notify("no filter was saved: / sets one, S saves it")
            return
        self.app.push_screen(Pick("Filters", list(self.app.saved_filters.items())), self._apply_filter)

    def _apply_filter(self, name: str | None) -> None:
        if name is not None:
            self.query_one("#filter", Input).value = self.app.saved_filters[name]

    def commands(self) -> Iterable[SystemCommand]:
        for name, text in self.app.saved_filters.items():
            yield SystemCommand(f"Filter: {name}", text, partial(self._apply_filter, name))

    def go_to(self, session: SessionSnapshot) -> None:
        """Puts the cursor on a session; clears a filter that hides it."""
        tree, experiment = self.app.session_tree, session.status.experiment
        if session.path not in tree.matched:
            self.query_one("#filter", Input).value = ""
            tree.filter = parse("")
        tree.fold(f"{experiment} {session.trial}", False)
        tree.fold(experiment, False)
        self.update_content()
        keys = [row.key for row in self.table.rows]
        if session.path in keys:
            self.table.cursor = keys.index(session.path)
        self._update_status()

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
            self.app.session_tree.filter = parse(event.value, known_names(self.app) or None)
            self.app.filter_text = event.value
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
        if app.refresh_error:
            text.append(f"{app.refresh_error}  ", palette.style("error"))
        if row is not None and not row.group:
            session = row.sessions[0]
            text.append(session.status.session, palette.style("foreground", bold=True))
            text.append(f"  {session.note}  " if session.note else "  ", palette.state(session.state))
        context = RenderContext(palette, app.now(), app.session_tree, app.trends)
        if row is not None and (more := as_text(row, self.table.hidden_columns, context)):
            text.append(f"{more}  ", palette.style("foreground"))
        text.append("  ".join(self._view_state()), palette.dim)
        self.set_status(text)

    def _view_state(self) -> list[str]:
        """How many sessions are shown and selected, the filter, the order and the run directory."""
        app, tree = self.app, self.app.session_tree
        shown = len(tree.matched)
        total = f"{shown:,} of {count(len(app.sessions), 'session')}" if tree.filter else count(shown, "session")
        reading = [f"reading {app.index.total:,}"] if app.index.unread else []
        hidden = len(app.selected - tree.matched)
        unseen = f" ({hidden:,} of them hidden by the filter: commands leave those alone)" if hidden else ""
        selected = [f"{len(app.selected):,} selected{unseen}"] if app.selected else []
        query = [f"filter: {self.query_one('#filter', Input).value}"] if tree.filter else []
        order = tree.order + (" reversed" if tree.reverse else "")
        return [*reading, total, *selected, *query, f"by {order}", str(app.runs)]
