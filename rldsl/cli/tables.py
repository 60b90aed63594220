"""Printing lines with markup and tables; without a terminal, plain text that is never wrapped."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


NARROW = 100
"""Columns of a terminal below which output is made narrower."""


@cache
def console() -> Console:
    """The console that commands print to."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)


def escape(text: str) -> str:
    """Text that is shown literally, brackets included."""
    from rich.markup import escape as escaped

    return escaped(text)


def echo(text: str) -> None:
    """Prints a line of markup."""
    console().print(text, soft_wrap=True)


def note_missing(runs: Path) -> None:
    """Says, beside the output, that a run directory does not exist: perhaps it is misspelled."""
    if not runs.is_dir():
        print(f"note: the run directory {runs} does not exist", file=sys.stderr)  # noqa: T201


def table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> None:
    """Prints aligned columns under their names; empty columns are left out."""
    from rich.table import Table

    kept = [index for index, _ in enumerate(names) if any(row[index] for row in rows)]
    gap = 1 if console().width < NARROW else 2
    shown = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for index in kept:
        shown.add_column(names[index], justify="right" if names[index] in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(row[index] for index in kept))
    console().print(shown)
