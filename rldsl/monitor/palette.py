"""Colours and marks of the states, of the theme in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.color import Color
from rich.style import Style

MARKS = {"new": "○", "resume": "◐", "running": "●", "done": "✓", "failed": "✗"}
ROLES = {"new": "secondary", "resume": "warning", "running": "primary", "done": "success", "failed": "error"}
ON_DARK = ("#4cc9f0", "#f9a03f", "#80ed99", "#f15bb5", "#fee440", "#b794f6", "#ff7b6b", "#94d2bd")
ON_LIGHT = ("#0077b6", "#c05c00", "#2d7d46", "#b5179e", "#8a6d00", "#6a3fc4", "#c1121f", "#00706b")


@dataclass(frozen=True)
class Palette:
    """The theme, as styles of cells."""

    colours: Mapping[str, str]
    dark: bool

    def colour(self, role: str) -> str:
        return self.colours.get(role) or self.colours["foreground"]

    def style(self, role: str, *, bold: bool = False, on: str | None = None) -> Style:
        return Style(color=self.colour(role), bold=bold, bgcolor=self.colour(on) if on else None)

    def state(self, state: str, *, bold: bool = False) -> Style:
        """The style of a state."""
        return self.style(ROLES[state], bold=bold)

    @property
    def dim(self) -> Style:
        """Less than the foreground, still readable."""
        return Style(color=mix(self.colour("foreground"), self.colour("background"), 0.45))

    @property
    def faint(self) -> Style:
        return Style(color=mix(self.colour("foreground"), self.colour("background"), 0.78))

    @property
    def lines(self) -> tuple[str, ...]:
        """Colours of curves, told apart on this background."""
        return ON_DARK if self.dark else ON_LIGHT


def mix(one: str, other: str, share: float) -> str:
    """A colour between two."""
    a, b = Color.parse(one).get_truecolor(), Color.parse(other).get_truecolor()
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b, strict=True))
