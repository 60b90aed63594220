"""What the commands that use the Hugging Face Hub share: the repository, progress and refused files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from rldsl.cli.tables import console, echo, escape
from rldsl.spec.errors import SpecError

if TYPE_CHECKING:
    from rldsl.hub.push import Progress
    from rldsl.hub.repository import Repository

MOST_LISTED = 20
Repo: TypeAlias = Annotated[
    str | None,
    typer.Option("--repo", metavar="OWNER/NAME", help="The repository; default: the variable HF_REPO."),
]
Public: TypeAlias = Annotated[bool, typer.Option("--public", help="A repository that is created is public.")]
BestOnly: TypeAlias = Annotated[
    bool, typer.Option("--best-only", help="Of the checkpoints only the best: enough to play, not to resume.")
]


def repository_of(name: str | None) -> Repository:
    """The dataset repository that a command is about."""
    from rldsl.hub.repository import Repository

    name = name or os.environ.get("HF_REPO")
    if not name:
        raise SpecError("which repository? --repo OWNER/NAME, or the variable HF_REPO")
    return Repository(name)


@contextmanager
def transfer_progress(verb: str) -> Iterator[Progress]:
    """Shows how many files are done: a bar on a terminal, a line for each step elsewhere."""
    if not sys.stdout.isatty():
        yield lambda done, total, text: print(f"{verb} {done:,} of {total:,} files", flush=True)  # noqa: T201
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(verb), BarColumn(30), MofNCompleteColumn(), TextColumn("files"), TimeRemainingColumn())
    with Bar(*columns, console=console(), transient=True) as bar:
        task = bar.add_task(verb, total=None)
        yield lambda done, total, text: bar.update(task, completed=done, total=total)


def show_refused(sentences: Sequence[str]) -> None:
    """Prints a line for each file or session that was refused."""
    for sentence in sentences[:MOST_LISTED]:
        echo(f"[red]{escape(sentence)}[/red]")
    if len(sentences) > MOST_LISTED:
        echo(f"[red]and {len(sentences) - MOST_LISTED:,} more[/red]")
