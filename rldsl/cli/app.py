"""The command line: `python FILE COMMAND` and `rldsl COMMAND FILE` run the same commands."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from rldsl.cli import INTERRUPTED, commands
from rldsl.cli.compare import compare
from rldsl.cli.graduate import graduate
from rldsl.cli.load import Declared, remember
from rldsl.cli.options import Choice
from rldsl.cli.plot import plot
from rldsl.cli.prune import prune
from rldsl.cli.pull import pull
from rldsl.cli.push import push
from rldsl.cli.sync import sync
from rldsl.cli.tensorboard import tensorboard
from rldsl.cli.watch import watch
from rldsl.spec.errors import EXIT_CODE, SpecError
from rldsl.store.errors import StoreError

Command: TypeAlias = Callable[..., int | None]

OF_A_FILE: tuple[Command, ...] = (
    commands.train,
    commands.plan,
    commands.search,
    commands.status,
    commands.logs,
    commands.stop,
    commands.resume,
    commands.enjoy,
    commands.report,
    plot,
    commands.audit,
)
OF_RLDSL: tuple[Command, ...] = (
    commands.new,
    watch,
    commands.list_,
    commands.diff,
    commands.export,
    commands.envs,
    commands.launchers,
    commands.schema,
    commands.results,
    commands.references,
    compare,
    tensorboard,
    sync,
    push,
    pull,
    graduate,
    prune,
)
LONGEST_SHOWN = 200

UsageError: Any = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")
"""The base class of usage errors: click's own or, in newer versions of typer, a copy inside typer."""


def run_file(file: Path, experiments: Declared, arguments: list[str]) -> int:
    """Runs the command line of an experiment file; without a command, it trains."""
    remember(file, experiments)
    if not arguments or (arguments[0].startswith("-") and arguments[0] != "--help"):
        arguments = ["train", *arguments]
    app = _app(f"The experiments of {file.name}; without a command, they are trained.")
    for command in OF_A_FILE:
        app.command(cls=_Command)(_with_options(command, file))
    return _run(app, arguments, f"python {file}")


def run_rldsl(arguments: list[str]) -> int:
    """Runs the command line of the console script `rldsl`."""
    app = _app("Deep reinforcement learning experiments as code: declare, plan, launch, watch, report.")
    app.callback()(_version_option)
    for command in (*OF_A_FILE, *OF_RLDSL):
        app.command(command.__name__.rstrip("_"), cls=_Command)(_with_options(command))
    return _run(app, arguments, "rldsl")


def _app(help: str) -> typer.Typer:
    return typer.Typer(
        cls=_Group, help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )


class _FlagHelp:
    """Shows `--help` as the flag that it is; typer would show it as `--help <bool>`."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]  # a mixin of typer's command classes
        if option is not None:
            option.metavar = ""
        return option


class _Command(_FlagHelp, TyperCommand):
    """A command of the application."""


class _Group(_FlagHelp, TyperGroup):
    """The application itself."""


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rldsl {version('rldsl')}")  # noqa: T201
        raise typer.Exit


def _version_option(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", is_eager=True, callback=_print_version, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options of `rldsl` itself."""


def _with_options(command: Command, file: Path | None = None) -> Command:
    """The command with the options of its `choice` as its own parameters; for a given file, without that argument."""
    own = inspect.signature(command, eval_str=True)
    options = inspect.signature(Choice, eval_str=True).parameters if "choice" in own.parameters else {}
    chosen = [one for name, one in options.items() if file is None or name != "file"]
    hidden = {"choice", "more"} if file else {"choice"}  # `python FILE plan` is about that file
    parameters = [*chosen, *(one for name, one in own.parameters.items() if name not in hidden)]
    for parameter in parameters:
        _hide_type_of_flag(parameter)

    def call(**given: Any) -> int | None:
        if options:
            choice = {one.name: given.pop(one.name) for one in chosen}
            given["choice"] = Choice(**({"file": file} | choice if file else choice))
        return command(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    return call


def _hide_type_of_flag(parameter: inspect.Parameter) -> None:
    """Keeps typer from showing a flag as `--all <bool>`."""
    kind, *settings = get_args(parameter.annotation) or (None,)
    for setting in settings:
        if kind is bool and isinstance(setting, OptionInfo):
            setting.metavar = ""


def _run(app: typer.Typer, arguments: list[str], name: str) -> int:
    """Runs a command; an error that the user can fix is printed as one sentence."""
    try:
        return int(app(arguments, prog_name=name, standalone_mode=False) or 0)
    except UsageError as error:
        error.show()
        return int(error.exit_code)
    except (SpecError, StoreError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_CODE
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (OSError, RecursionError, MemoryError) as error:  # such as a name that no filesystem can have
        print(f"error: {_system_error(error)}", file=sys.stderr)  # noqa: T201
        return EXIT_CODE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED


def _system_error(error: Exception) -> str:
    """An error of the operating system or of Python's limits in one line."""
    if not isinstance(error, OSError):
        return "out of memory" if isinstance(error, MemoryError) else "the input is nested too deeply"
    name = str(error.filename or "")
    shown = name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}..."
    return f"{shown}: {(error.strerror or str(error)).lower()}".removeprefix(": ")
