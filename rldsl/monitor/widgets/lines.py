"""Lines of text that grow at the end: follows them, finds words in them."""

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

MOST_LINES = 10_000


class Lines(ScrollView, can_focus=True):
    """Draws only the lines on the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "by(1)", "Down", show=False),
        Binding("k,up", "by(-1)", "Up", show=False),
        Binding("h,left", "aside(-8)", "Left", show=False),
        Binding("l,right", "aside(8)", "Right", show=False),
        Binding("ctrl+d,ctrl+f,pagedown", "page(1)", "Page down", show=False),
        Binding("ctrl+u,ctrl+b,pageup", "page(-1)", "Page up", show=False),
        Binding("g,home", "edge(0)", "First", show=False),
        Binding("G,end", "edge(1)", "Last", show=False),
    ]

    class Moved(Message):
        """Another part is shown."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: deque[str] = deque(maxlen=MOST_LINES)
        self.follow = True
        self.needle = ""
        self.found: int | None = None  # the line of the current match

    def clear(self) -> None:
        """Starts over, following."""
        self.lines.clear()
        self.follow, self.found = True, None
        self._resized()

    def add(self, lines: Iterable[str]) -> None:
        """More lines at the end; the oldest go where there are too many."""
        for line in lines:
            self.lines.append(line.expandtabs())
        self._resized()

    def _resized(self) -> None:
        width = max((len(line) for line in self.lines), default=0)
        self.virtual_size = Size(max(width, 1), len(self.lines))
        if self.follow:
            self.scroll_to(y=max(0, len(self.lines) - self.size.height), animate=False)
        self.refresh()

    def on_resize(self) -> None:
        self._resized()

    def action_by(self, lines: int) -> None:
        self._go(self.scroll_offset.y + lines)

    def action_page(self, pages: int) -> None:
        self._go(self.scroll_offset.y + pages * max(1, self.size.height - 1))

    def action_edge(self, last: int) -> None:
        self._go(len(self.lines) if last else 0)

    def action_aside(self, columns: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + columns, animate=False)

    def _go(self, y: int) -> None:
        """Goes to a line; the end is followed, any other place is stayed at."""
        last = max(0, len(self.lines) - self.size.height)
        self.follow = y >= last
        self.scroll_to(y=min(max(0, y), last), animate=False)
        self.refresh()
        self.post_message(self.Moved())

    def find(self, needle: str, *, forward: bool = True, again: bool = False) -> bool:
        """Goes to the nearest line that has the words; whether there is one."""
        self.needle = needle.lower()
        hits = [index for index, line in enumerate(self.lines) if self.needle and self.needle in line.lower()]
        if not hits:
            self.found = None
            self.refresh()
            return False
        here = self.found if self.found is not None and again else (-1 if forward else len(self.lines))
        self.found = _after(hits, here) if forward else _before(hits, here)
        self._go(self.found - self.size.height // 2)
        self.follow = False
        return True

    @property
    def matches(self) -> int:
        """How many lines have the words."""
        return sum(self.needle in line.lower() for line in self.lines) if self.needle else 0

    def render_line(self, y: int) -> Strip:
        palette = palette_of(self.app)
        base = Style(color=palette.colour("foreground"), bgcolor=palette.colour("background"))
        index = y + self.scroll_offset.y
        if index >= len(self.lines):
            return Strip([Segment(" " * self.size.width, base)])
        text = Text(self.lines[index], no_wrap=True)
        if self.needle:
            here = index == self.found
            mark = palette.style("background", on="accent") if here else palette.style("accent", bold=True)
            text.highlight_words([self.needle], mark, case_sensitive=False)
        strip = Strip(Segment.apply_style(text.render(self.app.console), base))
        x = self.scroll_offset.x
        return strip.crop(x, x + self.size.width).adjust_cell_length(self.size.width, base)


def _after(hits: list[int], here: int) -> int:
    return next((hit for hit in hits if hit > here), hits[0])


def _before(hits: list[int], here: int) -> int:
    return next((hit for hit in reversed(hits) if hit < here), hits[-1])
