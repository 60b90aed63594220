"""The command `tensorboard`: TensorBoard for chosen sessions, grouped by experiment."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS
from rldsl.cli.tables import echo
from rldsl.spec.errors import SpecError

REFRESH = 10.0
"""Seconds between two looks for new sessions."""


def tensorboard(
    source: Annotated[
        str, typer.Argument(metavar="[FILE|RUNS]", help="An experiment file, a run directory, or the id of a trial.")
    ] = str(RUNS),
    only: given.Only = None,
    runs: given.Runs = RUNS,
    host: Annotated[str, typer.Option("--host", metavar="NAME", help="Who may reach it.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="Its port; else 6006 or the next free one.")
    ] = None,
) -> int:
    """Open sessions in TensorBoard, grouped by experiment. Ctrl-C ends it.

    Sessions that start later appear by themselves.
    """
    from rldsl.cli.sessions import find_sessions
    from rldsl.report.tensorboard import LogDirectory, end, tensorboard_command
    from rldsl.report.words import count

    sessions = find_sessions(source, only or (), runs)
    if not sessions:
        raise SpecError(f"there are no sessions of {source}{'' if source == str(runs) else f' in {runs}'}")
    logs = LogDirectory()
    with _terminated_like_interrupted():
        process: subprocess.Popen[bytes] | None = None
        try:
            echo(f"{count(logs.add(sessions), 'session')}; TensorBoard is starting, Ctrl-C ends it")
            process = subprocess.Popen(tensorboard_command(logs.path, host, port))
            while process.poll() is None:
                try:
                    process.wait(REFRESH)
                except subprocess.TimeoutExpired:
                    logs.add(find_sessions(source, only or (), runs))
            return process.returncode
        except KeyboardInterrupt:
            return 0
        finally:
            if process is not None:
                end(process)
            logs.close()


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that nothing is left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
