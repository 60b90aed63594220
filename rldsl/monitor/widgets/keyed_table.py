"""A table whose rows have keys: the cursor stays on its row, and only cells that differ are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable

Row = tuple[str, Sequence[Text]]
"""The key of a row and its cells."""


class KeyedTable(DataTable[Text]):
    """Replaces its rows by `show`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "scroll_top", "First", show=False),
        Binding("G", "scroll_bottom", "Last", show=False),
        Binding("space", "select_row", "Select"),
    ]

    class Toggled(Message):
        """The user selects or unselects a row."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=True)
        self.keys: list[str] = []
        self._names: list[str] = []
        self._cells: list[Sequence[Text]] = []

    @property
    def current_key(self) -> str | None:
        """The key of the row under the cursor."""
        return self.keys[self.cursor_row] if 0 <= self.cursor_row < len(self.keys) else None

    def show(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Shows these rows. The cursor stays on the row with its key."""
        keys = [key for key, _ in rows]
        if list(columns) != self._names or keys != self.keys:
            self._replace(columns, rows, keys)
        else:
            self._update([cells for _, cells in rows])

    def _update(self, cells: list[Sequence[Text]]) -> None:
        for index, (before, after) in enumerate(zip(self._cells, cells, strict=True)):
            for column, (old, new) in enumerate(zip(before, after, strict=True)):
                if old != new or old.style != new.style:
                    self.update_cell_at((index, column), new, update_width=True)  # type: ignore[arg-type]
        self._cells = cells

    def _replace(self, columns: Sequence[str], rows: Sequence[Row], keys: list[str]) -> None:
        current, row, scroll = self.current_key, self.cursor_row, self.scroll_offset
        same = list(columns) == self._names
        self.clear(columns=not same)
        if not same:
            self.add_columns(*columns)
        self.add_rows(cells for _, cells in rows)
        self._names, self.keys, self._cells = list(columns), keys, [cells for _, cells in rows]
        self.scroll_to(scroll.x, scroll.y, animate=False)
        self.move_cursor(row=keys.index(current) if current in keys else min(row, len(keys) - 1), animate=False)

    def action_select_row(self) -> None:
        if self.current_key is not None:
            self.post_message(self.Toggled(self.current_key))
            self.action_cursor_down()
