"""The commands of an experiment file and of `rldsl`."""

from __future__ import annotations

import sys
from pathlib import Path

from rldsl.builders.experiment import ExperimentBuilder
from rldsl.cli.load import captured, check_declared
from rldsl.spec.errors import EXIT_CODE, SpecError
from rldsl.spec.experiment import Experiment

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def main(*experiments: ExperimentBuilder | Experiment) -> None:
    """The last line of an experiment file: runs the command of `python FILE [COMMAND]` on its experiments."""
    try:
        check_declared(experiments)
    except SpecError as error:
        if captured(()):
            raise
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_CODE)
    if captured(experiments) or _in_worker():
        return
    try:
        from rldsl.cli.app import run_file
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(run_file(Path(sys.argv[0]), experiments, sys.argv[1:]))


def _in_worker() -> bool:
    """Whether a worker process loads the file for the classes that it defines; `main(...)` may be unguarded."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith(("rldsl.train.", "rldsl.play."))


def run() -> None:
    """The console script `rldsl`."""
    try:
        from rldsl.cli.app import run_rldsl
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(run_rldsl(sys.argv[1:]))
