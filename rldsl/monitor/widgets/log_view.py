"""A view of a growing log: follows its end and searches in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rldsl.monitor.themes import palette_of
from rldsl.monitor.widgets.painted import Painted

MAX_LINES = 10_000


class LogView(Painted, ScrollView, can_focus=True):
    """Renders only the visible lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "line(1)", "Down", show=False),
        Binding("k,up", "line(-1)", "Up", show=False),
        Binding("h,left", "sideways(-8)", "Left", show=False),
        Binding("l,right", "sideways(8)", "Right", show=False),
        Binding("ctrl+d,ctrl+f,pagedown", "page(1)", "Page down", show=False),
        Binding("ctrl+u,ctrl+b,pageup", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(0)", "First", show=False),
        Binding("G,end", "edge(1)", "Last", show=False),
    ]

    class Moved(Message):
        """The view was scrolled."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: deque[str] = deque(maxlen=MAX_LINES)
        self.follow = True
        self.query_text = ""
        self.match: int | None = None  # index of the current match

    def clear(self) -> None:
        """Removes all lines and follows the end again."""
        self.lines.clear()
        self.follow, self.match = True, None
        self._resized()

    def add(self, lines: Iterable[str]) -> None:
        """Appends lines; the oldest are dropped above `MAX_LINES`."""
        for line in lines:
            self.lines.append(line.expandtabs())
        self._resized()

    def _resized(self) -> None:
        width = max((len(line) for line in self.lines), default=0)
        self.virtual_size = Size(max(width, 1), len(self.lines))
        if self.follow:
            self.scroll_to(y=max(0, len(self.lines) - self.size.height), animate=False, force=True)
        self.repaint()

    def on_resize(self) -> None:
        super().on_resize()
        self._resized()

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.repaint())

    def action_line(self, lines: int) -> None:
        self._go(self.scroll_offset.y + lines)

    def action_page(self, pages: int) -> None:
        self._go(self.scroll_offset.y + pages * max(1, self.size.height - 1))

    def action_edge(self, last: int) -> None:
        self._go(len(self.lines) if last else 0)

    def action_sideways(self, columns: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + columns, animate=False, force=True)

    def _go(self, y: int) -> None:
        """Scrolls to a line; follows the log if that is its end."""
        last = max(0, len(self.lines) - self.size.height)
        self.follow = y >= last
        self.scroll_to(y=min(max(0, y), last), animate=False, force=True)
        self.repaint()
        self.post_message(self.Moved())

    def find(self, text: str, *, forward: bool = True, again: bool = False) -> bool:
        """Scrolls to the nearest line that contains the text; returns whether there is one.

        With `again`, the search starts at the current match instead of the start or the end of the log.
        """
        self.query_text = text.lower()
        hits = [index for index, line in enumerate(self.lines) if self.query_text and self.query_text in line.lower()]
        if not hits:
            self.match = None
            self.repaint()
            return False
        start = self.match if self.match is not None and again else (-1 if forward else len(self.lines))
        self.match = _after(hits, start) if forward else _before(hits, start)
        self._go(self.match - self.size.height // 2)
        self.follow = False
        return True

    @property
    def match_count(self) -> int:
        """The number of lines that contain the text."""
        return sum(self.query_text in line.lower() for line in self.lines) if self.query_text else 0

    def draw_line(self, y: int) -> Strip:
        palette = palette_of(self.app)
        base = Style(color=palette.colour("foreground"), bgcolor=palette.colour("background"))
        index = y + self.scroll_offset.y
        if index >= len(self.lines):
            return Strip([Segment(" " * self.size.width, base)])
        text = Text(self.lines[index], no_wrap=True)
        if self.query_text:
            current = index == self.match
            style = palette.style("background", on="accent") if current else palette.style("accent", bold=True)
            text.highlight_words([self.query_text], style, case_sensitive=False)
        strip = Strip(Segment.apply_style(text.render(self.app.console), base))
        x = self.scroll_offset.x
        return strip.crop(x, x + self.size.width).adjust_cell_length(self.size.width, base)


def _after(hits: list[int], start: int) -> int:
    return next((hit for hit in hits if hit > start), hits[0])


def _before(hits: list[int], start: int) -> int:
    return next((hit for hit in reversed(hits) if hit < start), hits[-1])
