"""The command line: `python FILE COMMAND` and `rldsl COMMAND FILE` are the same commands."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import typer

from rldsl.cli import commands
from rldsl.cli.load import Declared, know
from rldsl.cli.options import Choice
from rldsl.cli.watch import watch
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError

Command: TypeAlias = Callable[..., int | None]

OF_A_FILE: tuple[Command, ...] = (
    commands.train,
    commands.plan,
    commands.search,
    commands.status,
    commands.stop,
    commands.resume,
    commands.enjoy,
    commands.report,
)
OF_RLDSL: tuple[Command, ...] = (
    commands.new,
    watch,
    commands.list_,
    commands.diff,
    commands.envs,
    commands.launchers,
    commands.schema,
)
INTERRUPTED = 130

WrongUsage: Any = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")
"""An option or argument that is not right; by its version, typer takes it from click or from a click of its own."""


def run_file(file: Path, experiments: Declared, arguments: list[str]) -> int:
    """What `main(...)` of an experiment file does; without a command, it trains."""
    know(file, experiments)
    if not arguments or (arguments[0].startswith("-") and arguments[0] != "--help"):
        arguments = ["train", *arguments]
    app = _app(f"The experiments of {file.name}; without a command, they are trained.")
    for command in OF_A_FILE:
        app.command()(_spelled_out(command, file))
    return _run(app, arguments, f"python {file}")


def run_rldsl(arguments: list[str]) -> int:
    """What the console script does."""
    app = _app("Deep reinforcement learning experiments as code: declare, plan, launch, watch, report.")
    for command in (*OF_A_FILE, *OF_RLDSL):
        app.command(command.__name__.rstrip("_"))(_spelled_out(command))
    return _run(app, arguments, "rldsl")


def _app(help: str) -> typer.Typer:
    return typer.Typer(help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _spelled_out(command: Command, file: Path | None = None) -> Command:
    """The command with the options of its `choice` as its own; for one file, without the argument that names it."""
    own = inspect.signature(command, eval_str=True)
    options = inspect.signature(Choice, eval_str=True).parameters if "choice" in own.parameters else {}
    chosen = [one for name, one in options.items() if file is None or name != "file"]
    parameters = [*chosen, *(one for name, one in own.parameters.items() if name != "choice")]

    def call(**given: Any) -> int | None:
        if options:
            choice = {one.name: given.pop(one.name) for one in chosen}
            given["choice"] = Choice(**({"file": file} | choice if file else choice))
        return command(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def _run(app: typer.Typer, arguments: list[str], name: str) -> int:
    """Runs a command; an error that a person can mend is one sentence."""
    try:
        return int(app(arguments, prog_name=name, standalone_mode=False) or 0)
    except WrongUsage as error:
        error.show()
        return int(error.exit_code)
    except (SpecError, StoreError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0
