"""The tree of sessions as a table that renders only its visible rows, however many there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rldsl.monitor.palette import Palette
from rldsl.monitor.session_tree import SessionTree, TreeRow
from rldsl.monitor.themes import palette_of
from rldsl.monitor.trends import Trends
from rldsl.monitor.widgets.cells import (
    Column,
    RenderContext,
    chosen_columns,
    cursor_background,
    fit,
    fitting_columns,
    name_cell,
    with_long_states,
)
from rldsl.monitor.widgets.painted import Painted


class TreeTable(Painted, ScrollView, can_focus=True):
    """Rows with a cursor and a selection. Actions are posted as messages, which the screen handles."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("pagedown,ctrl+d,ctrl+f", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+u,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("home,g", "edge(0)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
        Binding("right,l", "fold(False)", "Unfold", show=False),
        Binding("left,h", "fold(True)", "Fold", show=False),
        Binding("space", "select", "Select"),
        Binding("enter", "open", "Open"),
    ]

    class Folded(Message):
        """The user folds or unfolds a row."""

        def __init__(self, row: TreeRow, folded: bool) -> None:
            super().__init__()
            self.row, self.folded = row, folded

    class Opened(Message):
        """The user opens a session."""

        def __init__(self, row: TreeRow) -> None:
            super().__init__()
            self.row = row

    class Selected(Message):
        """The user selects or unselects a row."""

        def __init__(self, row: TreeRow) -> None:
            super().__init__()
            self.row = row

    class Sorted(Message):
        """The user clicks on the header of a column."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    class Moved(Message):
        """The cursor moved to another row."""

    cursor = reactive(0, always_update=True, repaint=False)

    def __init__(self, *, clock: Callable[[], float] = time.time, id: str | None = None) -> None:
        super().__init__(id=id)
        self.clock = clock
        self.rows: list[TreeRow] = []
        self.selected: set[str] = set()
        self.empty = "reading ..."
        self.columns: list[Column] = chosen_columns(None)
        self.session_tree: SessionTree | None = None
        self.trends: Trends | None = None
        self._columns: list[Column] = []
        self._palette: Palette | None = None
        self._was_moved = False

    def show(self, rows: list[TreeRow], selected: set[str]) -> None:
        """Replaces the rows. Once the user has moved the cursor, it stays on its row, at the same height."""
        key = self.current_row.key if self.current_row and self._was_moved else None
        self.rows, self.selected = rows, selected
        self._fit()
        self.virtual_size = Size(self.width, len(rows) + 1)
        cursor = next((index for index, row in enumerate(rows) if row.key == key), self.cursor)
        if cursor != self.cursor:
            self.scroll_to(y=self.scroll_offset.y + cursor - self.cursor, animate=False, force=True)
        self.set_reactive(TreeTable.cursor, self.validate_cursor(cursor))
        self.repaint()

    @property
    def width(self) -> int:
        """Without the scrollbar, for which room is always kept."""
        return self.scrollable_content_region.width

    @property
    def hidden_columns(self) -> list[Column]:
        """The columns that do not fit."""
        shown = {column.name for column in self._columns}
        return [column for column in self.columns if column.name not in shown]

    def choose_columns(self, names: Sequence[str] | None) -> None:
        """Shows these columns, as far as they fit; None for the usual ones."""
        self.columns = chosen_columns(names)
        self._fit()
        self.repaint()

    def _fit(self) -> None:
        self._columns = fitting_columns(self.width, with_long_states(self.columns, self.rows))

    @property
    def current_row(self) -> TreeRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._forget_palette())

    def _forget_palette(self) -> None:
        self._palette = None
        self.repaint()

    def on_resize(self) -> None:
        super().on_resize()
        self._fit()
        self.virtual_size = Size(self.width, len(self.rows) + 1)

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self.rows) - 1))

    def watch_cursor(self, before: int, cursor: int) -> None:
        """Keeps the row under the cursor visible, below the header."""
        room = max(1, self.size.height - 1)
        top = self.scroll_offset.y
        if cursor < top:
            self.scroll_to(y=cursor, animate=False, force=True)
        elif cursor >= top + room:
            self.scroll_to(y=cursor - room + 1, animate=False, force=True)
        self.repaint()
        if before != cursor:
            self._was_moved = True
            self.post_message(self.Moved())

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, pages: int) -> None:
        self.cursor += pages * max(1, self.size.height - 2)

    def action_edge(self, last: int) -> None:
        self.cursor = len(self.rows) - 1 if last else 0

    def action_fold(self, folded: bool) -> None:
        """Folds or unfolds a group; folding a session moves the cursor to its group."""
        row = self.current_row
        if row is None:
            return
        if row.group and row.open == folded:
            self.post_message(self.Folded(row, folded))
        elif folded:
            above = range(self.cursor - 1, -1, -1)
            self.cursor = next((index for index in above if self.rows[index].depth < row.depth), self.cursor)

    def action_select(self) -> None:
        if self.current_row:
            self.post_message(self.Selected(self.current_row))
            self.cursor += 1

    def action_open(self) -> None:
        row = self.current_row
        if row is None:
            return
        if row.group:
            self.post_message(self.Folded(row, row.open))
        else:
            self.post_message(self.Opened(row))

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, on the mark of a group it folds; a double click opens."""
        index = event.y + self.scroll_offset.y - 1
        if event.y == 0:
            self.post_message(self.Sorted(self._column_at(event.x)))
            return
        if index >= len(self.rows):
            return
        self.cursor = index
        row = self.rows[index]
        on_mark = row.group and event.x <= 2 * row.depth + 4
        if on_mark or event.chain == 2:
            self.action_open()

    def _column_at(self, x: int) -> str:
        """The name of the column at x; `name` for the first one."""
        start = self._name_width
        for column in self._columns:
            if start <= x < start + column.width + 1:
                return column.name
            start += column.width + 1
        return "name"

    def draw_line(self, y: int) -> Strip:
        """One line of the screen: the header, a row of the tree, or blank."""
        self._palette = self._palette or palette_of(self.app)
        context = RenderContext(self._palette, self.clock(), self.session_tree, self.trends)
        if y == 0:
            return self._header(context)
        index = y - 1 + self.scroll_offset.y
        if index >= len(self.rows):
            return self._blank(y, context)
        return self._render_row(self.rows[index], context, index == self.cursor)

    def _blank(self, y: int, context: RenderContext) -> Strip:
        text = f"  {self.empty}" if y == 2 and not self.rows else ""
        return self._strip([Segment(text, context.palette.dim)], context.palette.colour("background"))

    def _header(self, context: RenderContext) -> Strip:
        style = context.palette.dim + Style(bold=True)
        order = self.session_tree.order if self.session_tree else ""
        mark = ("▲" if self.session_tree.reverse else "▼") if self.session_tree else ""
        segments = fit([Segment(f"    session{mark if order == 'name' else ''}", style)], self._name_width, right=False)
        for column in self._columns:
            title = f"{column.name}{mark}" if column.name == order else column.name
            segments += [Segment(" "), *fit([Segment(title, style)], column.width, column.right)]
        return self._strip(segments, context.palette.colour("surface"))

    def _render_row(self, row: TreeRow, context: RenderContext, under_cursor: bool) -> Strip:
        selected = bool(self.selected) and all(session.path in self.selected for session in row.sessions)
        segments = fit(name_cell(row, context, selected), self._name_width, right=False)
        for column in self._columns:
            segments += [Segment(" "), *fit(column.cell(row, context), column.width, column.right)]
        background = context.palette.colour("background")
        if under_cursor:
            background = cursor_background(context.palette, self.has_focus)
        return self._strip(segments, background)

    def _strip(self, segments: list[Segment], background: str) -> Strip:
        base = Style(bgcolor=background, color=self._palette.colour("foreground") if self._palette else None)
        strip = Strip(segment for segment in Segment.apply_style(segments, base) if segment.text)
        return strip.adjust_cell_length(self.width, base).simplify()  # fewer segments are fewer bytes to send

    @property
    def _name_width(self) -> int:
        return max(0, self.width - sum(column.width + 1 for column in self._columns))
