"""The dark and the light theme of the monitor."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.theme import Theme

from rldsl.monitor.palette import Palette

DARK = Theme(
    name="rldsl-dark",
    primary="#5cb8ff",
    secondary="#8fa3b8",
    accent="#ffb454",
    warning="#ffc857",
    error="#ff6b6b",
    success="#6fdc8c",
    foreground="#dde3ea",
    background="#0f1419",
    surface="#151b22",
    panel="#1e2731",
    dark=True,
)
LIGHT = Theme(
    name="rldsl-light",
    primary="#0062b8",
    secondary="#5a6b7d",
    accent="#a85400",
    warning="#946200",
    error="#c62828",
    success="#1b7f3b",
    foreground="#1c2733",
    background="#fbfcfd",
    surface="#f0f3f6",
    panel="#e0e6ec",
    dark=False,
)


def palette_of(app: App[Any]) -> Palette:
    """The palette of the current theme."""
    theme = app.current_theme
    return _palette(theme.name, theme, bool(getattr(app, "safe_colours", False)))


_palettes: dict[tuple[str, bool], Palette] = {}


def _palette(name: str, theme: Theme, safe: bool) -> Palette:
    """Generating the colours of a theme takes a millisecond: it is done once."""
    if (name, safe) not in _palettes:
        _palettes[name, safe] = Palette(theme.to_color_system().generate(), theme.dark, safe)
    return _palettes[name, safe]
