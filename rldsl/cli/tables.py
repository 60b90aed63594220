"""Printing lines with markup and tables; without a terminal, plain text that is never wrapped."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console


MOST_STYLED = 1000
"""Rows of a table with colours, which take about a millisecond each; longer tables are plain text."""
NARROW = 100
"""Columns of a terminal below which output is made narrower."""
NOTE, EXPERIMENT = "note", "experiment"
"""Columns with rules of their own: notes are folded, the experiment is left out only if all rows have the same."""
LEAST, LEAST_NOTE = 8, 16
"""Characters that are left of a column that is wrapped, and of one with notes."""


@cache
def console() -> Console:
    """The console that commands print to."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)


def escape(text: str) -> str:
    """Text that is shown literally, brackets included."""
    from rich.markup import escape as escaped

    return escaped(text)


def echo(text: str) -> None:
    """Prints a line of markup."""
    console().print(text, soft_wrap=True)


def note_missing(runs: Path) -> None:
    """Says, beside the output, that a run directory does not exist: perhaps it is misspelled."""
    if not os.path.isdir(runs):  # noqa: PTH112 (never raises, whatever the name is)
        note(f"the run directory {runs} does not exist")


def note(sentence: str) -> None:
    """Prints a sentence beside the output, for what is left out of it."""
    print(f"note: {sentence}", file=sys.stderr)  # noqa: T201


def table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str] = (),
    drop: Sequence[str] = (),
    wrap: str | None = None,
) -> None:
    """Prints aligned columns under their names; empty columns are left out.

    Where the terminal is too narrow, the columns of `drop` are left out one after the other, and then the column `wrap`
    is continued on further lines. No other cell is broken, except for notes, and none is cut.
    """
    from rich.table import Table

    if len(rows) > MOST_STYLED:
        _print_plain(names, rows, right)
        return
    gap = 1 if console().width < NARROW else 2
    kept = [index for index, _ in enumerate(names) if any(row[index] for row in rows)]
    widths = {index: max(_width(names[index]), *(_width(row[index]) for row in rows)) for index in kept}
    folded = [index for index in kept if names[index] == NOTE]
    for name in drop:
        if _total(widths, kept, folded, gap) <= console().width:
            break
        if name != EXPERIMENT or len({row[names.index(name)] for row in rows}) == 1:
            kept = [index for index in kept if names[index] != name]
    too_wide = _total(widths, kept, folded, gap) - console().width
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for index in kept:
        side: Literal["left", "right"] = "right" if names[index] in right else "left"
        wrapped = names[index] == wrap and too_wide > 0
        width = max(LEAST, widths[index] - too_wide) if wrapped else None
        fixed = None if index in folded or wrapped else widths[index]
        shown.add_column(names[index], justify=side, overflow="fold", max_width=width, min_width=fixed)
    for row in rows:
        shown.add_row(*(row[index] for index in kept))
    console().print(shown)


def fits(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a table with all these columns fits the terminal."""
    gap = 1 if console().width < NARROW else 2
    widths = {index: max(_width(name), *(_width(row[index]) for row in rows)) for index, name in enumerate(names)}
    return _total(widths, list(widths), [], gap) <= console().width


def _total(widths: dict[int, int], kept: Sequence[int], folded: Sequence[int], gap: int) -> int:
    """The width of a table; a column of notes needs some room only."""
    return sum(min(widths[index], LEAST_NOTE) if index in folded else widths[index] for index in kept) + gap * (
        len(kept) - 1
    )


def _width(cell: str) -> int:
    from rich.text import Text

    return Text.from_markup(cell, emoji=False).cell_len


def _print_plain(names: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
    kept = [index for index, _ in enumerate(names) if any(row[index] for row in rows)]
    names = [names[index] for index in kept]
    cells = [names, *([_plain(row[index]) for index in kept] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  ".join(f"{{:{'>' if name in right else '<'}{width}}}" for name, width in zip(names, widths, strict=True))
    sys.stdout.write("".join(f"{form.format(*row).rstrip()}\n" for row in cells))


@cache
def _plain(cell: str) -> str:
    """The text of a cell without its markup."""
    from rich.markup import render

    return render(cell, emoji=False).plain if "[" in cell or "\\" in cell else cell
