"""Colours and symbols of the session states, taken from the current theme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.color import Color
from rich.style import Style

MARKS = {
    "new": "○",
    "queued": "◌",
    "resume": "◐",
    "paused": "‖",
    "starting": "◔",
    "compiling": "◔",
    "running": "●",
    "stopping": "◕",
    "resuming": "◔",
    "stalled": "◍",
    "killed": "⊗",
    "crashed": "⊗",
    "done": "✓",
    "failed": "✗",
}
ROLES = {
    "new": "secondary",
    "queued": "secondary",
    "resume": "warning",
    "paused": "warning",
    "starting": "primary",
    "compiling": "primary",
    "running": "primary",
    "stopping": "warning",
    "resuming": "primary",
    "stalled": "error",
    "killed": "error",
    "crashed": "error",
    "done": "success",
    "failed": "error",
}
ATTENTION = (
    *("failed", "killed", "crashed", "stalled", "stopping", "running", "compiling", "starting", "resuming"),
    *("resume", "paused", "queued", "new", "done"),
)
"""The states, those that need attention first. States that are not listed come after the problems."""
PROBLEMS = frozenset({"failed", "killed", "crashed", "stalled"})
ON_DARK = ("#4cc9f0", "#f9a03f", "#80ed99", "#f15bb5", "#fee440", "#b794f6", "#ff7b6b", "#94d2bd")
ON_LIGHT = ("#0077b6", "#c05c00", "#2d7d46", "#b5179e", "#8a6d00", "#6a3fc4", "#c1121f", "#00706b")


def mark(state: str) -> str:
    """The symbol of a state; states that other versions write have one too."""
    return MARKS.get(state, MARKS.get(state.partition(" ")[0], "◇"))


def attention(state: str) -> float:
    """The rank of a state: the lower, the more it needs attention."""
    name = state if state in ATTENTION else state.partition(" ")[0]
    return ATTENTION.index(name) if name in ATTENTION else len(PROBLEMS) - 0.5


SAFE_ON_DARK = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#ffffff")
SAFE_ON_LIGHT = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000", "#7f7f7f")
"""Okabe & Ito's palette, which people with any colour vision can tell apart."""


@dataclass(frozen=True)
class Palette:
    """The colours of a theme as Rich styles."""

    colours: Mapping[str, str]
    dark: bool
    safe: bool = False
    """Whether curves have colours for any colour vision."""

    def colour(self, role: str) -> str:
        return self.colours.get(role) or self.colours["foreground"]

    def style(self, role: str, *, bold: bool = False, on: str | None = None) -> Style:
        return Style(color=self.colour(role), bold=bold, bgcolor=self.colour(on) if on else None)

    def state(self, state: str, *, bold: bool = False) -> Style:
        """The style of a session state."""
        role = ROLES.get(state) or ROLES.get(state.partition(" ")[0], "accent")
        return self.style(role, bold=bold)

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
        if self.safe:
            return SAFE_ON_DARK if self.dark else SAFE_ON_LIGHT
        return ON_DARK if self.dark else ON_LIGHT

    def line_colour(self, index: int) -> str:
        """The colour of a curve; after the last colour comes the first again."""
        return self.line_colours[index % len(self.line_colours)]


def mix(first: str, second: str, share: float) -> str:
    """Blends two colours: `first` at share 0, `second` at share 1."""
    a, b = Color.parse(first).get_truecolor(), Color.parse(second).get_truecolor()
    return "#" + "".join(f"{round(x + (y - x) * share):02x}" for x, y in zip(a, b, strict=True))
