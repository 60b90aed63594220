"""The command `watch`: the monitor, in this terminal or in a browser."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from rldsl.cli.options import RUNS
from rldsl.launch.notify import check_url
from rldsl.spec.errors import SpecError

PORT = 8765
TOKEN = "RLDSL_WATCH_TOKEN"  # noqa: S105 (the name of a variable; a token in a command line could be read by others)


def watch(
    runs: Annotated[Path, typer.Argument(metavar="[RUNS]", help="The run directory.")] = RUNS,
    serve: Annotated[bool, typer.Option("--serve", help="In a browser instead of this terminal.")] = False,
    host: Annotated[str, typer.Option("--host", metavar="NAME", help="With --serve: who may reach it.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="With --serve: its port.")] = PORT,
    light: Annotated[
        bool | None, typer.Option("--light/--dark", help="Dark text on a light ground; otherwise as the last time.")
    ] = None,
    read_only: Annotated[
        bool | None,
        typer.Option(
            "--read-only/--allow-actions", help="Refuse keys that stop, resume and edit; the default of --serve."
        ),
    ] = None,
    notify: Annotated[
        str | None, typer.Option("--notify", metavar="URL", help="Also post alerts (failed, stalled, ...) here.")
    ] = None,
) -> None:
    """Watch sessions live: tree, curves, logs, searches, queues.

    It reads the run directory: over SSH, beside any launcher.
    Keys: ? lists them all, / filters (status:failed env:Hopper algo:ppo),
    space selects, enter opens, c stops and r resumes after a question.

    --serve prints an address with a token, reached from this machine only.
    Such a page only shows; with --allow-actions it also stops and resumes.
    From elsewhere: ssh -L 8765:127.0.0.1:8765 HOST, then open it there.
    RLDSL_WATCH_TOKEN sets the token, otherwise it is a new one each time.
    """
    if notify is not None and (problem := check_url(notify)) is not None:
        raise SpecError(problem)
    if serve:
        from rldsl.monitor.serve import serve as serve_in_browser

        serve_in_browser(
            runs, host=host, port=port, token=os.environ.get(TOKEN), light=bool(light), read_only=read_only is not False
        )
        return
    if not _drawable():
        raise SpecError("watch needs a terminal; `rldsl list` prints the same facts, `watch --serve` makes a page")
    from rldsl.monitor.app import WatchApp
    from rldsl.monitor.settings import settings_path

    kept = None if "TEXTUAL_DRIVER" in os.environ else settings_path()
    WatchApp(runs, light=light, read_only=bool(read_only), notify_url=notify, settings=kept).run()


def _drawable() -> bool:
    """Whether there is a terminal, or a server that draws for a browser."""
    return sys.stdout.isatty() or "TEXTUAL_DRIVER" in os.environ
