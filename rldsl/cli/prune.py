"""The command `prune`: what can be removed from a run directory."""

from __future__ import annotations

from typing import Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS
from rldsl.cli.tables import echo, escape, note_missing, table
from rldsl.report.words import count, duration


def prune(
    yes: Annotated[bool, typer.Option("--yes", help="Remove them; without it, only list them.")] = False,
    runs: given.Runs = RUNS,
) -> None:
    """List copies of the code and files of submissions that no queued or running job needs; --yes removes them.

    Sessions and their results are never touched.
    """
    from rldsl.launch.prune import find_removable, remove

    note_missing(runs)
    found = find_removable(runs)
    if not found:
        echo(f"there is nothing to remove from {escape(str(runs))}")
        return
    rows = [[one.kind, escape(str(one.path.relative_to(runs))), _size(one.bytes), duration(one.age)] for one in found]
    table(["what", "path", "size", "age"], rows, right=("size", "age"))
    total = f"{count(len(found), 'folder')}, {_size(sum(one.bytes for one in found))}"
    if yes:
        remove(runs, found)
        echo(f"removed {total}")
    else:
        echo(f"{total}: `rldsl prune --yes` removes them")


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB"
