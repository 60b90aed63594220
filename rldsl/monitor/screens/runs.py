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
from rldsl.monitor.outline import ORDERS
from rldsl.monitor.screens.base import WatchScreen
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.cells import Look, in_words
from rldsl.monitor.widgets.tree_table import TreeTable
from rldsl.report.words import count


class RunsScreen(WatchScreen):
    """The screen that a person leaves open."""

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

    def update_facts(self) -> None:
        app = self.app
        self.table.empty = app.emptiness
        self.table.show(app.outline.lines(app.seen, app.index.families), app.selected)
        self._tell()

    def tick(self) -> None:
        """Ages grow without anything having changed."""
        self.table.refresh()

    @on(TreeTable.Folded)
    def _fold(self, event: TreeTable.Folded) -> None:
        self.app.outline.folded[event.line.key] = event.folded
        self.update_facts()

    @on(TreeTable.Selected)
    def _select(self, event: TreeTable.Selected) -> None:
        paths = {one.path for one in event.line.sessions}
        self.app.selected = self.app.selected - paths if paths <= self.app.selected else self.app.selected | paths
        self.update_facts()

    @on(TreeTable.Opened)
    def _open(self, event: TreeTable.Opened) -> None:
        self.app.focus_on([one.path for one in event.line.sessions])
        self.app.action_show("detail")

    @on(TreeTable.Moved)
    def _moved(self) -> None:
        self._tell()

    def action_order(self) -> None:
        names = list(ORDERS)
        outline = self.app.outline
        outline.order = names[(names.index(outline.order) + 1) % len(names)]
        self.update_facts()

    def action_reverse(self) -> None:
        self.app.outline.reverse = not self.app.outline.reverse
        self.update_facts()

    def action_fold_all(self, folded: bool) -> None:
        outline = self.app.outline
        groups = {one.status.experiment for one in self.app.seen.values()}
        groups |= {f"{one.status.experiment} {one.trial}" for one in self.app.seen.values()}
        outline.folded = dict.fromkeys(groups, folded)
        self.update_facts()

    def action_unselect(self) -> None:
        self.app.selected = set()
        self.update_facts()

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.add_class("-shown")
        box.focus()

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        """Filters as a person types; what cannot be understood is said, and the tree stays as it was."""
        try:
            self.app.outline.filter = parse(event.value)
        except FilterError as error:
            self.say(Text(str(error), palette_of(self.app).style("error")))
            return
        self.update_facts()

    @on(Input.Submitted, "#filter")
    def _done(self) -> None:
        self._close_filter()

    def action_leave(self) -> None:
        """First the filter goes, then the selection."""
        box = self.query_one("#filter", Input)
        if box.value or box.has_focus:
            box.value = ""
            self._close_filter()
        else:
            self.action_unselect()

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("-shown")
        self.table.focus()
        self._tell()

    def _tell(self) -> None:
        """What is shown of how much, and what is to be said of the line under the cursor."""
        app, palette = self.app, palette_of(self.app)
        text = Text(no_wrap=True, overflow="ellipsis")
        line = self.table.line
        app.under_cursor = [one.path for one in line.sessions] if line else []
        if app.trouble:
            text.append(f"{app.trouble}  ", palette.style("error"))
        if line is not None and not line.group:
            status = line.sessions[0].status
            text.append(status.session, palette.style("foreground", bold=True))
            text.append(f"  {status.note}  " if status.note else "  ", palette.state(status.state))
        if line is not None and (more := in_words(line, self.table.hidden, Look(palette, app.now()))):
            text.append(f"{more}  ", palette.style("foreground"))
        text.append("  ".join(self._facts()), palette.dim)
        self.say(text)

    def _facts(self) -> list[str]:
        app = self.app
        shown = len({one.path for line in self.table.lines for one in line.sessions})
        some = f"{shown:,} of {count(len(app.seen), 'session')}" if app.outline.filter else count(shown, "session")
        reading = [f"reading {app.index.total:,}"] if app.index.unread else []
        chosen = [f"{len(app.selected):,} selected"] if app.selected else []
        filtered = [f"filter: {self.query_one('#filter', Input).value}"] if app.outline.filter else []
        order = app.outline.order + (" reversed" if app.outline.reverse else "")
        return [*reading, some, *chosen, *filtered, f"by {order}", str(app.runs)]
