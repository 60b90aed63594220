"""The columns of the session tree: which of them fit, and how their cells are rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from rldsl.monitor.palette import Palette, attention, mark, mix
from rldsl.monitor.session_tree import SessionTree, Summary, TreeRow
from rldsl.monitor.trends import Trends, sparkline
from rldsl.report.words import amount, duration, value

MIN_NAME_WIDTH = 28
BAR_WIDTH = 10
LONG_STATE = len("✓ failed (other code)")


@dataclass(frozen=True)
class RenderContext:
    """What cells need to be rendered: the colours and the current time."""

    palette: Palette
    now: float
    tree: SessionTree | None = None
    trends: Trends | None = None


Cell = Callable[[TreeRow, RenderContext], list[Segment]]


@dataclass(frozen=True)
class Column:
    """A column; on a narrow terminal, those with the highest rank are left out first."""

    name: str
    width: int
    rank: int
    cell: Cell
    right: bool = True


def fitting_columns(width: int, columns: Sequence[Column] | None = None) -> list[Column]:
    """The columns that fit beside the name in a row of this width."""
    columns = DEFAULT_COLUMNS if columns is None else columns
    room = width - MIN_NAME_WIDTH
    kept = set()
    for column in sorted(columns, key=lambda column: column.rank):
        if room < column.width + 1:
            break
        room -= column.width + 1
        kept.add(column.name)
    return [column for column in columns if column.name in kept]


def with_long_states(columns: Sequence[Column], rows: Iterable[TreeRow]) -> list[Column]:
    """The columns with more room for states such as `done (other code)`, if there is one."""
    if not any(row.sessions[0].status.other_code for row in rows if not row.group):
        return list(columns)
    return [replace(column, width=LONG_STATE) if column.name == "state" else column for column in columns]


def column_named(name: str, rank: int) -> Column:
    """A built-in column, or one for a metric, a setting or another value of sessions."""
    known = next((column for column in COLUMNS if column.name == name), None)
    return known or Column(name, max(8, min(14, len(name))), 20 + rank, _value_cell(name))


def chosen_columns(names: Sequence[str] | None) -> list[Column]:
    """The columns with these names, in this order; None for the usual ones."""
    if names is None:
        return list(DEFAULT_COLUMNS)
    return [column_named(name, rank) for rank, name in enumerate(names)]


def fit(segments: list[Segment], width: int, right: bool) -> list[Segment]:
    """Pads segments to a width, or cuts them off with an ellipsis."""
    length = sum(cell_len(segment.text) for segment in segments)
    if length <= width:
        gap = Segment(" " * (width - length))
        return [gap, *segments] if right else [*segments, gap]
    kept: list[Segment] = []
    room = width - 1
    for segment in segments:
        text = segment.text if cell_len(segment.text) <= room else set_cell_size(segment.text, room)
        kept.append(Segment(text, segment.style))
        room -= cell_len(text)
        if room <= 0:
            break
    return [*kept, Segment("…" if width > 0 else "", kept[-1].style if kept else None)]


def name_cell(row: TreeRow, context: RenderContext, selected: bool) -> list[Segment]:
    """The indented label; a group has a mark for folded or unfolded."""
    fold = ("▾ " if row.open else "▸ ") if row.group else "  "
    selection = Segment("◆ " if selected else "  ", context.palette.style("accent", bold=True))
    bold = row.group and row.depth == 0
    style = context.palette.style("foreground", bold=bold) if row.group or row.depth < 2 else context.palette.dim
    return [selection, Segment("  " * row.depth), Segment(fold, context.palette.dim), Segment(row.label, style)]


def as_text(row: TreeRow, columns: Iterable[Column], context: RenderContext) -> str:
    """The cells of columns that did not fit, as `fps 5k`."""
    cells = ((column.name, "".join(cell.text for cell in column.cell(row, context)).strip()) for column in columns)
    return "  ".join(f"{name} {text}" for name, text in cells if text)


def _state(row: TreeRow, context: RenderContext) -> list[Segment]:
    states = row.summary.states
    if not row.group:
        session, state = row.sessions[0], row.summary.state
        compiling = state == "compiling" and session.since is not None
        elapsed = f" {age(context.now - (session.since or 0.0))}" if compiling else ""
        return [Segment(f"{mark(state)} {session.label}{elapsed}", context.palette.state(state))]
    ordered = sorted(states, key=attention)
    return [Segment(f"{mark(state)}{amount(states[state])} ", context.palette.state(state)) for state in ordered]


def bar(share: float, width: int, style: Style, rest: Style) -> list[Segment]:
    """A progress bar with a resolution of half a cell."""
    halves = round(share * width * 2)
    full, half = divmod(halves, 2)
    done = "━" * full + ("╸" if half else "")
    return [Segment(done, style), Segment("─" * (width - len(done)), rest)]


def _progress(row: TreeRow, context: RenderContext) -> list[Segment]:
    summary = row.summary
    if summary.states.keys() == {"new"}:
        return bar(0, BAR_WIDTH, context.palette.faint, context.palette.faint)
    style = context.palette.state(summary.state if not row.group else _group_state(summary))
    return bar(summary.progress, BAR_WIDTH, style, context.palette.faint)


def _group_state(summary: Summary) -> str:
    """Running if any session runs, otherwise the state that needs attention most."""
    return "running" if summary.states["running"] else summary.state


def _trend(row: TreeRow, context: RenderContext) -> list[Segment]:
    """The return over the whole session."""
    if row.group or context.trends is None:
        return []
    session = row.sessions[0]
    return [
        Segment(
            sparkline(context.trends.get(session.path, session.changed), BAR_WIDTH), context.palette.style("primary")
        )
    ]


def _tags(row: TreeRow, context: RenderContext) -> list[Segment]:
    tags = dict.fromkeys(tag for session in row.sessions for tag in session.status.tags)
    return [Segment(" ".join(tags), context.palette.style("accent"))]


def _device(row: TreeRow, context: RenderContext) -> list[Segment]:
    devices = {session.status.device for session in row.sessions} - {None}
    return [Segment(str(devices.pop()) if len(devices) == 1 else "mixed" if devices else "", context.palette.dim)]


def _value_cell(name: str) -> Cell:
    def cell(row: TreeRow, context: RenderContext) -> list[Segment]:
        found = context.tree.value(row, name) if context.tree else None
        if found is None:
            return []
        text = f"{found:.4g}" if isinstance(found, float) and abs(found) < 1e5 else value(found)
        return [Segment(_short(found) if isinstance(found, int | float) and abs(found) >= 1e5 else text)]

    return cell


def _frames(row: TreeRow, context: RenderContext) -> list[Segment]:
    summary = row.summary
    if summary.frame >= summary.frames or summary.states.keys() == {"new"}:
        return [Segment(amount(summary.frames), context.palette.dim)]
    return [Segment(_short(summary.frame)), Segment(f"/{_short(summary.frames)}", context.palette.dim)]


def _short(number: float) -> str:
    """Three digits, at most six characters, so that it fits into its column."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _fps(row: TreeRow, context: RenderContext) -> list[Segment]:
    fps = row.summary.fps
    style = None if row.summary.states["running"] else context.palette.dim
    return [Segment("" if fps is None else _short(fps), style)]


def _return(row: TreeRow, context: RenderContext) -> list[Segment]:
    """`episode_return`, green once it has reached the target."""
    episode_return, target = row.summary.episode_return, row.summary.target
    if episode_return is None:
        return []
    reached = target is not None and episode_return >= target
    text = f"{episode_return:.1f}" if abs(episode_return) < 1e5 else _short(episode_return)
    return [Segment(text, context.palette.style("success", bold=True) if reached else None)]


def _target(row: TreeRow, context: RenderContext) -> list[Segment]:
    target = row.summary.target
    return [Segment("" if target is None else f"{target:g}", context.palette.dim)]


def _left(row: TreeRow, context: RenderContext) -> list[Segment]:
    left = row.summary.left
    return [Segment("" if left is None else duration(left))]


def _age(row: TreeRow, context: RenderContext) -> list[Segment]:
    """The seconds of sessions that do not run are left out: they would be sent to the terminal again and again."""
    changed = row.summary.changed
    if changed is None:
        return []
    live = any(session.live for session in row.sessions)
    seconds = context.now - changed
    text = age(seconds) if live or seconds >= 60 else "<1m"
    return [Segment(text, context.palette.dim)]


def age(seconds: float) -> str:
    """A time span in its largest unit: 10m, 3h."""
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{letter}"
    return f"{max(0.0, seconds):.0f}s"


def _backend(row: TreeRow, context: RenderContext) -> list[Segment]:
    return [Segment(row.summary.backend, context.palette.dim)]


def cursor_background(palette: Palette, focused: bool) -> str:
    """The background of the row under the cursor, on which all colours stay readable."""
    return mix(palette.colour("background"), palette.colour("primary"), 0.25 if focused else 0.12)


COLUMNS = (
    Column("state", 15, 0, _state, right=False),
    Column("backend", 12, 9, _backend, right=False),
    Column("progress", BAR_WIDTH, 1, _progress, right=False),
    Column("frames", 11, 5, _frames),
    Column("fps", 6, 6, _fps),
    Column("trend", BAR_WIDTH, 7, _trend, right=False),
    Column("return", 7, 2, _return),
    Column("target", 6, 3, _target),
    Column("left", 7, 4, _left),
    Column("age", 5, 8, _age),
    Column("tags", 12, 10, _tags, right=False),
    Column("device", 8, 11, _device, right=False),
)
DEFAULT_COLUMNS = tuple(column for column in COLUMNS if column.name not in ("tags", "device"))
