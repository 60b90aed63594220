"""The cells of a line of the tree: which columns fit, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from rldsl.monitor.outline import URGENCY, Figures, Line
from rldsl.monitor.palette import MARKS, Palette, mix
from rldsl.report.words import amount, duration

NAME_LEAST = 28
BAR = 10


@dataclass(frozen=True)
class Look:
    """What a cell is drawn with."""

    palette: Palette
    now: float


Cell = Callable[[Line, Look], list[Segment]]


@dataclass(frozen=True)
class Column:
    """A column: the lower its rank, the longer it stays when the terminal shrinks."""

    name: str
    width: int
    rank: int
    cell: Cell
    right: bool = True


def fitting(width: int) -> list[Column]:
    """The columns that a line of this width has room for beside the name."""
    room = width - NAME_LEAST
    kept = set()
    for column in sorted(COLUMNS, key=lambda one: one.rank):
        if room < column.width + 1:
            break
        room -= column.width + 1
        kept.add(column.name)
    return [column for column in COLUMNS if column.name in kept]


def fitted(segments: list[Segment], width: int, right: bool) -> list[Segment]:
    """Exactly so wide: filled up, or cut with an ellipsis."""
    length = sum(cell_len(one.text) for one in segments)
    if length <= width:
        gap = Segment(" " * (width - length))
        return [gap, *segments] if right else [*segments, gap]
    kept: list[Segment] = []
    room = width - 1
    for one in segments:
        text = one.text if cell_len(one.text) <= room else set_cell_size(one.text, room)
        kept.append(Segment(text, one.style))
        room -= cell_len(text)
        if room <= 0:
            break
    return [*kept, Segment("…" if width > 0 else "", kept[-1].style if kept else None)]


def name_cell(line: Line, look: Look, selected: bool) -> list[Segment]:
    """The label, indented; a group has a mark that says whether it is open."""
    mark = ("▾ " if line.open else "▸ ") if line.group else "  "
    chosen = Segment("◆ " if selected else "  ", look.palette.style("accent", bold=True))
    bold = line.group and line.depth == 0
    style = look.palette.style("foreground", bold=bold) if line.group or line.depth < 2 else look.palette.dim
    return [chosen, Segment("  " * line.depth), Segment(mark, look.palette.dim), Segment(line.label, style)]


def in_words(line: Line, columns: Iterable[Column], look: Look) -> str:
    """Columns that there is no room for, as `fps 5k`."""
    found = ((column.name, "".join(one.text for one in column.cell(line, look)).strip()) for column in columns)
    return "  ".join(f"{name} {text}" for name, text in found if text)


def _state(line: Line, look: Look) -> list[Segment]:
    states = line.figures.states
    if not line.group:
        state = line.figures.state
        return [Segment(f"{MARKS[state]} {state}", look.palette.state(state))]
    shown = sorted(states, key=URGENCY.__getitem__)
    return [Segment(f"{MARKS[state]}{amount(states[state])} ", look.palette.state(state)) for state in shown]


def bar(share: float, width: int, style: Style, rest: Style) -> list[Segment]:
    """A thin bar, exact to half a cell."""
    halves = round(share * width * 2)
    full, half = divmod(halves, 2)
    done = "━" * full + ("╸" if half else "")
    return [Segment(done, style), Segment("─" * (width - len(done)), rest)]


def _progress(line: Line, look: Look) -> list[Segment]:
    one = line.figures
    if one.states.keys() == {"new"}:
        return bar(0, BAR, look.palette.faint, look.palette.faint)
    style = look.palette.state(one.state if not line.group else _group_state(one))
    return bar(one.progress, BAR, style, look.palette.faint)


def _group_state(one: Figures) -> str:
    """A group runs if any of it does; otherwise it is as bad as its worst."""
    return "running" if one.states["running"] else one.state


def _frames(line: Line, look: Look) -> list[Segment]:
    one = line.figures
    if one.frame >= one.frames or one.states.keys() == {"new"}:
        return [Segment(amount(one.frames), look.palette.dim)]
    return [Segment(_short(one.frame)), Segment(f"/{_short(one.frames)}", look.palette.dim)]


def _short(number: float) -> str:
    """At most six characters: 1.235M would crowd the column."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _fps(line: Line, look: Look) -> list[Segment]:
    fps = line.figures.fps
    style = None if line.figures.states["running"] else look.palette.dim
    return [Segment("" if fps is None else _short(fps), style)]


def _return(line: Line, look: Look) -> list[Segment]:
    """The return, green once it has reached the target."""
    one = line.figures
    if one.episode_return is None:
        return []
    reached = one.target is not None and one.episode_return >= one.target
    text = f"{one.episode_return:.1f}" if abs(one.episode_return) < 1e5 else _short(one.episode_return)
    return [Segment(text, look.palette.style("success", bold=True) if reached else None)]


def _target(line: Line, look: Look) -> list[Segment]:
    target = line.figures.target
    return [Segment("" if target is None else f"{target:g}", look.palette.dim)]


def _left(line: Line, look: Look) -> list[Segment]:
    left = line.figures.left
    return [Segment("" if left is None else duration(left))]


def _age(line: Line, look: Look) -> list[Segment]:
    changed = line.figures.changed
    return [Segment("" if changed is None else age(look.now - changed), look.palette.dim)]


def age(seconds: float) -> str:
    """In one unit: how long ago is never exact."""
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{letter}"
    return f"{max(0.0, seconds):.0f}s"


def _place(line: Line, look: Look) -> list[Segment]:
    return [Segment(line.figures.place, look.palette.dim)]


def cursor_background(palette: Palette, focused: bool) -> str:
    """The line under the cursor: clear, and every colour still readable on it."""
    return mix(palette.colour("background"), palette.colour("primary"), 0.25 if focused else 0.12)


COLUMNS = (
    Column("state", 11, 0, _state, right=False),
    Column("place", 12, 7, _place, right=False),
    Column("progress", BAR, 1, _progress, right=False),
    Column("frames", 11, 5, _frames),
    Column("fps", 6, 6, _fps),
    Column("return", 7, 2, _return),
    Column("target", 6, 3, _target),
    Column("left", 7, 4, _left),
    Column("age", 5, 8, _age),
)
