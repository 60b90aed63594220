"""The tree of sessions as a table that draws only the lines on the screen, however many there are."""

from __future__ import annotations

import time
from collections.abc import Callable
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

from rldsl.monitor.outline import Line
from rldsl.monitor.palette import Palette
from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.cells import COLUMNS, Column, Look, cursor_background, fitted, fitting, name_cell


class TreeTable(ScrollView, can_focus=True):
    """Lines with a cursor and a selection; what they mean is the screen's to say."""

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
        """A person folds or unfolds a line."""

        def __init__(self, line: Line, folded: bool) -> None:
            super().__init__()
            self.line, self.folded = line, folded

    class Opened(Message):
        """A person opens a session."""

        def __init__(self, line: Line) -> None:
            super().__init__()
            self.line = line

    class Selected(Message):
        """A person selects a line, or takes it back."""

        def __init__(self, line: Line) -> None:
            super().__init__()
            self.line = line

    class Moved(Message):
        """The cursor is on another line."""

    cursor = reactive(0, always_update=True)

    def __init__(self, *, clock: Callable[[], float] = time.time, id: str | None = None) -> None:
        super().__init__(id=id)
        self.clock = clock
        self.lines: list[Line] = []
        self.selected: set[str] = set()
        self.empty = "looking ..."
        self._columns: list[Column] = []
        self._palette: Palette | None = None
        self._was_moved = False

    def show(self, lines: list[Line], selected: set[str]) -> None:
        """Puts these lines in place of what was shown; a cursor that was moved stays with its line, where it was."""
        key = self.line.key if self.line and self._was_moved else None
        self.lines, self.selected = lines, selected
        self.virtual_size = Size(self.width, len(lines) + 1)
        here = next((index for index, line in enumerate(lines) if line.key == key), self.cursor)
        if here != self.cursor:
            self.scroll_to(y=self.scroll_offset.y + here - self.cursor, animate=False)
        self.set_reactive(TreeTable.cursor, self.validate_cursor(here))
        self.refresh()

    @property
    def width(self) -> int:
        """Beside the scrollbar, whose place is kept."""
        return self.scrollable_content_region.width

    @property
    def hidden(self) -> list[Column]:
        """The columns that there is no room for."""
        return [column for column in COLUMNS if column not in self._columns]

    @property
    def line(self) -> Line | None:
        """The line under the cursor."""
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._forget_palette())

    def _forget_palette(self) -> None:
        self._palette = None
        self.refresh()

    def on_resize(self) -> None:
        self._columns = fitting(self.width)
        self.virtual_size = Size(self.width, len(self.lines) + 1)
        self.refresh()

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self.lines) - 1))

    def watch_cursor(self, before: int, cursor: int) -> None:
        """Keeps the line under the cursor in sight, below the heading."""
        room = max(1, self.size.height - 1)
        top = self.scroll_offset.y
        if cursor < top:
            self.scroll_to(y=cursor, animate=False)
        elif cursor >= top + room:
            self.scroll_to(y=cursor - room + 1, animate=False)
        self.refresh()
        if before != cursor:
            self._was_moved = True
            self.post_message(self.Moved())

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_page(self, pages: int) -> None:
        self.cursor += pages * max(1, self.size.height - 2)

    def action_edge(self, last: int) -> None:
        self.cursor = len(self.lines) - 1 if last else 0

    def action_fold(self, folded: bool) -> None:
        """Folds or unfolds; where there is nothing to fold, goes to the line above that there is."""
        line = self.line
        if line is None:
            return
        if line.group and line.open == folded:
            self.post_message(self.Folded(line, folded))
        elif folded:
            above = range(self.cursor - 1, -1, -1)
            self.cursor = next((index for index in above if self.lines[index].depth < line.depth), self.cursor)

    def action_select(self) -> None:
        if self.line:
            self.post_message(self.Selected(self.line))
            self.cursor += 1

    def action_open(self) -> None:
        if self.line is None:
            return
        if self.line.group:
            self.post_message(self.Folded(self.line, self.line.open))
        else:
            self.post_message(self.Opened(self.line))

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, one on the mark folds, two open."""
        index = event.y + self.scroll_offset.y - 1
        if event.y == 0 or index >= len(self.lines):
            return
        self.cursor = index
        line = self.lines[index]
        on_mark = line.group and event.x <= 2 * line.depth + 4
        if on_mark or event.chain == 2:
            self.action_open()

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the heading, a line of the tree, or nothing."""
        self._palette = self._palette or palette_of(self.app)
        look = Look(self._palette, self.clock())
        if y == 0:
            return self._heading(look)
        index = y - 1 + self.scroll_offset.y
        if index >= len(self.lines):
            return self._blank(y, look)
        return self._drawn(self.lines[index], look, index == self.cursor)

    def _blank(self, y: int, look: Look) -> Strip:
        text = f"  {self.empty}" if y == 2 and not self.lines else ""
        return self._strip([Segment(text, look.palette.dim)], look.palette.colour("background"))

    def _heading(self, look: Look) -> Strip:
        style = look.palette.dim + Style(bold=True)
        segments = fitted([Segment("    session", style)], self._name_width, right=False)
        for column in self._columns:
            segments += [Segment(" "), *fitted([Segment(column.name, style)], column.width, column.right)]
        return self._strip(segments, look.palette.colour("surface"))

    def _drawn(self, line: Line, look: Look, under_cursor: bool) -> Strip:
        chosen = bool(self.selected) and all(one.path in self.selected for one in line.sessions)
        segments = fitted(name_cell(line, look, chosen), self._name_width, right=False)
        for column in self._columns:
            segments += [Segment(" "), *fitted(column.cell(line, look), column.width, column.right)]
        background = look.palette.colour("background")
        if under_cursor:
            background = cursor_background(look.palette, self.has_focus)
        return self._strip(segments, background)

    def _strip(self, segments: list[Segment], background: str) -> Strip:
        base = Style(bgcolor=background, color=self._palette.colour("foreground") if self._palette else None)
        strip = Strip(Segment.apply_style(segments, base))
        return strip.adjust_cell_length(self.width, base)

    @property
    def _name_width(self) -> int:
        return max(0, self.width - sum(column.width + 1 for column in self._columns))
