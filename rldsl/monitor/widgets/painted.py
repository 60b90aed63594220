"""Widgets that send only what differs to the terminal: over SSH, an idle monitor is silent."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static


class Painted(Widget):
    """A widget that draws line by line. `repaint` refreshes the cells that differ from what is on the screen."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._painted: dict[int, Strip] = {}

    def draw_line(self, y: int) -> Strip:
        """A line of the widget as it should be now."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        strip = self._painted[y] = self.draw_line(y)
        return strip

    def on_resize(self) -> None:
        self._painted.clear()
        self.refresh()

    def repaint(self) -> None:
        """Draws again what has changed."""
        regions = []
        for y in range(self.size.height):
            before, after = self._painted.get(y), self.draw_line(y)
            if before is None:
                self.refresh()
                return
            if before != after:
                first, last = difference(before, after)
                regions.append(Region(first, y, last - first, 1))
        if regions:
            self.refresh(*regions)


def difference(before: Strip, after: Strip) -> tuple[int, int]:
    """The columns from the first to behind the last cell that differ."""
    old, new = _cells(before), _cells(after)
    if old is None or new is None or len(old) != len(new):
        return 0, max(before.cell_length, after.cell_length)
    differ = [index for index, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
    return (differ[0], differ[-1] + 1) if differ else (0, after.cell_length)


def _cells(strip: Strip) -> list[tuple[str, object]] | None:
    """Each cell with its style; None if a letter is wider than a cell."""
    cells: list[tuple[str, object]] = []
    for text, style, _ in strip:
        if cell_len(text) != len(text):
            return None
        cells += [(letter, style) for letter in text]
    return cells


class PaintedText(Painted):
    """A text of many lines, of which those that change are sent."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Strip] = []

    def show(self, text: Text, base: Style) -> None:
        """Shows a text on a background."""
        lines = (Strip(Segment.apply_style(line.render(self.app.console), base)) for line in text.split("\n"))
        self._lines = [line.adjust_cell_length(max(1, self.size.width), base).simplify() for line in lines]
        self.styles.height = max(1, len(self._lines))
        self.repaint()

    def draw_line(self, y: int) -> Strip:
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width)


class TextLines(Static):
    """A text of fixed height that is sent only when it changes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._shown: object = None

    def show(self, text: object) -> None:
        """Shows a text, if it is not shown already."""
        if text != self._shown or getattr(text, "style", None) != getattr(self._shown, "style", None):
            self._shown = text
            self.update(text, layout=False)  # type: ignore[arg-type]
