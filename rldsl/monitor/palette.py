"""Colours and symbols of the session states, taken from the current theme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.color import Color
from rich.style import Style

MARKS = {"new": "○", "resume": "◐", "paused": "‖", "running": "●", "done": "✓", "failed": "✗"}
ROLES = {
    "new": "secondary",
    "resume": "warning",
    "paused": "warning",
    "running": "primary",
    "done": "success",
    "failed": "error",
}
ON_DARK = ("#4cc9f0", "#f9a03f", "#80ed99", "#f15bb5", "#fee440", "#b794f6", "#ff7b6b", "#94d2bd")
ON_LIGHT = ("#0077b6", "#c05c00", "#2d7d46", "#b5179e", "#8a6d00", "#6a3fc4", "#c1121f", "#00706b")


@dataclass(frozen=True)
class Palette:
    """The colours of a theme as Rich styles."""

    colours: Mapping[str, str]
    dark: bool

    def colour(self, role: str) -> str:
        return self.colours.get(role) or self.colours["foreground"]

    def style(self, role: str, *, bold: bool = False, on: str | None = None) -> Style:
        return Style(color=self.colour(role), bold=bold, bgcolor=self.colour(on) if on else None)

    def state(self, state: str, *, bold: bool = False) -> Style:
        """The style of a session state."""
        return self.style(ROLES[state], bold=bold)

    @property
    def dim(self) -> Style:
        """Secondary text: less contrast than the foreground, still readable."""
        return Style(color=mix(self.colour("foreground"), self.colour("background"), 0.45))

    @property
    def faint(self) -> Style:
        """Decoration such as axes and the empty part of a bar."""
        return Style(color=mix(self.colour("foreground"), self.colour("background"), 0.78))

    @property
    def line_colours(self) -> tuple[str, ...]:
        """Colours of curves, chosen to be distinguishable on the background."""
        return ON_DARK if self.dark else ON_LIGHT


def mix(first: str, second: str, share: float) -> str:
    """Blends two colours: `first` at share 0, `second` at share 1."""
    a, b = Color.parse(first).get_truecolor(), Color.parse(second).get_truecolor()
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b, strict=True))
