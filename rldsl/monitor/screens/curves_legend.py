"""The legend of the curves: a line for each group with its value, the target, and sessions that cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual.geometry import Size

from rldsl.monitor.chart_lines import Group, value_at
from rldsl.monitor.palette import Palette
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.panel import Line
from rldsl.report.words import count

ENTRY_WIDTH = 60
"""Entries stand beside each other if each has this much room."""
MAX_LINES = 8
"""Lines that can be told apart by their colour."""
MAX_PROBLEMS = 3


def columns_of(size: Size) -> int:
    """Entries beside each other."""
    return max(1, size.width // ENTRY_WIDTH)


def room_for(size: Size) -> int:
    """Lines on one page: as many as the legend has room for, so that each has its entry."""
    rows = max(3, min(10, (size.height - 4) // 3))
    return max(1, min(MAX_LINES, rows * columns_of(size) - 1))


def legend_text(
    lines: Sequence[Line],
    groups: Sequence[Group],
    target: float | None,
    crosshair: float | None,
    problems: Mapping[str, str],
    sessions: Mapping[str, SessionSnapshot],
    smoothing: float,
    size: Size,
    palette: Palette,
) -> Text:
    """The entries, as many beside each other as fit."""
    pinned = {group.label for group in groups if group.pinned}
    entries = [_entry(line, crosshair, line.label in pinned, palette) for line in lines]
    if target is not None:
        entries.append(
            Text.assemble(
                ("╌╌ ", palette.style("foreground")),
                (f"{target:>8g} ", palette.style("foreground", bold=True)),
                "target",
            )
        )
    if smoothing:
        entries.append(Text(f"smoothed: EMA {smoothing:g}", palette.style("accent")))
    rows = [*_in_columns(entries, size), *_problems(problems, sessions, palette)]
    return Text("\n", no_wrap=True, overflow="ellipsis").join(rows)


def _problems(problems: Mapping[str, str], sessions: Mapping[str, SessionSnapshot], palette: Palette) -> list[Text]:
    """A line for each session that cannot be read."""
    names = {path: sessions[path].status.session if path in sessions else path for path in problems}
    lines = [f"✗ {names[path]}: {reason}" for path, reason in list(problems.items())[:MAX_PROBLEMS]]
    more = len(problems) - MAX_PROBLEMS
    return [Text(line, palette.style("error")) for line in [*lines, *([f"✗ and {more} more"] if more > 0 else [])]]


def _entry(line: Line, crosshair: float | None, pinned: bool, palette: Palette) -> Text:
    value = line.last if crosshair is None else value_at(line, crosshair)
    text = Text()
    text.append("━━ ", palette.line_colour(line.color))
    text.append(f"{'-' if value is None else f'{value:.4g}':>8} ", palette.style("foreground", bold=True))
    text.append(f"×{line.seeds} " if line.seeds > 1 else "", palette.dim)
    text.append("⚲ " if pinned else "", palette.style("accent"))
    return text.append(line.label)


def _in_columns(entries: Sequence[Text], size: Size) -> list[Text]:
    columns = columns_of(size)
    width = max(1, (size.width - 2) // columns)
    count = -(-len(entries) // columns)
    rows = []
    for row in range(count):
        line = Text()
        for entry in entries[row::count]:
            cell = entry.copy()
            cell.truncate(width - 2, overflow="ellipsis", pad=True)
            line.append_text(cell).append("  ")
        rows.append(line)
    return rows


def counted(groups: Sequence[Group]) -> str:
    """How many sessions and lines there are."""
    sessions = sum(len(group.paths) for group in groups)
    return f": {count(sessions, 'session')}, {count(len(groups), 'line')}"
