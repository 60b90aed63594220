"""The command `pull`, and the sessions of a repository for `list --hub`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS
from rldsl.cli.tables import echo, escape, table
from rldsl.cli.transfer import BestOnly, Repo, repository_of, show_refused, transfer_progress
from rldsl.plan.overrides import matches
from rldsl.report.words import amount, count, duration
from rldsl.spec.errors import SpecError, suggestion

if TYPE_CHECKING:
    from rldsl.hub.index import Index, IndexRow


def pull(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Experiments, or the beginnings of ids; default: all sessions."),
    ] = None,
    repo: Repo = None,
    best_only: BestOnly = False,
    runs: given.Runs = RUNS,
) -> int:
    """Pull sessions from a dataset repository of the Hugging Face Hub into the run directory.

    Reading a public repository needs no token. Checksums are verified, and no code is executed.
    Sessions that have more frames here are not changed. `resume` and `train` continue what was pulled.
    """
    from rldsl.hub.pull import Pull

    repository = repository_of(repo)
    with transfer_progress("pulled") as progress:
        pulled = Pull(repository, runs, best_only=best_only, progress=progress).run(
            lambda index: chosen(index, names or ())
        )
    show_refused(pulled.refused)
    for directory in pulled.ahead:
        echo(f"kept {escape(directory)}: it has more frames here")
    same = f", {pulled.unchanged:,} unchanged" if pulled.unchanged else ""
    echo(f"{count(len(pulled.sessions), 'session')} pulled{same}: {escape(str(runs))}")
    return int(bool(pulled.refused))


def chosen(index: Index, names: Sequence[str]) -> list[IndexRow]:
    """The sessions of a repository that are called by experiment, by the beginning of an id, or by directory."""
    rows = [index.rows[name] for name in sorted(index.rows)]
    for name in names:
        if not any(_called(row, name) for row in rows):
            known = {known for row in rows for known in (row.experiment, row.id)}
            raise SpecError(f"the repository has no session {name}; {suggestion(name, known)}")
    return [row for row in rows if not names or any(_called(row, name) for name in names)]


def show_index(repo: str | None, as_json: bool) -> None:
    """Prints the sessions of a repository."""
    from rldsl.hub.index import open_index

    index, _ = open_index(repository_of(repo))
    rows = [index.rows[name] for name in sorted(index.rows)]
    if as_json:
        print(json.dumps([_data(row) for row in rows], indent=2))  # noqa: T201
        return
    names = ["experiment", "session", "state", "frames", "score", "target", "time", "MB"]
    table(names, [_cells(row) for row in rows], right=names[3:])
    size = sum(row.size for row in rows) / 1e6
    echo(f"[bold]{count(len(rows), 'session')}[/bold], {size:,.1f} MB; `rldsl pull NAME` gets them")


def _called(row: IndexRow, name: str) -> bool:
    return matches(name, row.experiment) or row.id.startswith(name) or row.directory == name


def _data(row: IndexRow) -> dict[str, object]:
    names = ("experiment", "env", "agent", "trial", "seed", "state", "frame", "frames", "score", "target", "seconds")
    return {"session": row.id, **{name: getattr(row, name) for name in (*names, "size", "audited", "directory")}}


def _cells(row: IndexRow) -> list[str]:
    progress = "" if row.state == "done" else f"{amount(row.frame)}/"
    return [
        escape(row.experiment),
        row.id,
        escape(row.state),
        progress + amount(row.frames),
        "" if row.score is None else f"{row.score:.1f}",
        "" if row.target is None else f"{row.target:g}",
        duration(row.seconds) if row.seconds else "",
        f"{row.size / 1e6:,.1f}",
    ]
