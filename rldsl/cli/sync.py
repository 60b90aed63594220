"""The command `sync`: copies sessions to Weights & Biases or trackio."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS
from rldsl.cli.tables import echo, escape, note
from rldsl.report.words import count
from rldsl.spec.errors import SpecError, suggestion

if TYPE_CHECKING:
    from rldsl.store.session_dir import SessionDir

INTERVAL = 15.0
"""Seconds between two looks for new log points."""


def sync(
    source: Annotated[
        str, typer.Argument(metavar="[FILE|RUNS]", help="An experiment file, a run directory, or the id of a trial.")
    ] = str(RUNS),
    to: Annotated[str, typer.Option("--to", metavar="TRACKER", help="wandb or trackio.")] = "wandb",
    project: Annotated[str, typer.Option("--project", metavar="NAME", help="The project there.")] = "rldsl",
    only: given.Only = None,
    runs: given.Runs = RUNS,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until every session has ended; Ctrl-C stops.")
    ] = False,
) -> int:
    """Copy sessions to Weights & Biases or trackio: a run each, grouped by experiment.

    Log points are read from the run directory; training is not involved.
    Each log point is copied once, however often the command is run.
    """
    from rldsl.cli.sessions import find_sessions
    from rldsl.report.sinks import SINKS, make_sink
    from rldsl.report.sync import SYNC, SessionCopy, copy_sessions, mark_of

    if to not in SINKS:
        raise SpecError(f"--to {to}: {suggestion(to, SINKS)}")
    sink = make_sink(to, project, runs / SYNC)
    copies: dict[Path, SessionCopy] = {}
    unreadable: set[Path] = set()

    def show(session: SessionDir, points: int) -> None:
        echo(f"{escape(session.recorded().experiment)} {session.id}: {count(points, 'log point')}")

    try:
        while True:
            for one in _readable(find_sessions(source, only or (), runs), unreadable):
                copies.setdefault(one.path, SessionCopy(one, sink, mark_of(one, to, project)))
            if not copies and not unreadable and not follow:
                raise SpecError(f"there are no sessions of {source}{'' if source == str(runs) else f' in {runs}'}")
            if (copies and copy_sessions(list(copies.values()), show)) or not follow:
                break
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        echo("stopped; the same command continues")
        return 130
    finally:
        for copy in copies.values():
            copy.close()
    echo(f"{count(len(copies), 'session')} in the project {escape(project)} of {to}")
    return int(bool(unreadable))


def _readable(sessions: Iterable[SessionDir], unreadable: set[Path]) -> Iterator[SessionDir]:
    """Those whose record can be read; the others are told once, and added to `unreadable`."""
    for one in sessions:
        damage = None if one.path in unreadable else one.recorded().damage
        if damage:
            note(f"left out: {damage}")
            unreadable.add(one.path)
        elif one.path not in unreadable:
            yield one
