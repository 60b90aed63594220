"""The commands of an experiment file and of `rldsl`."""

from __future__ import annotations

import sys
from pathlib import Path

from rldsl.builders.experiment import ExperimentBuilder
from rldsl.cli.load import captured
from rldsl.spec.experiment import Experiment


def main(*experiments: ExperimentBuilder | Experiment) -> None:
    """The last line of an experiment file: what `python FILE [COMMAND]` does with its experiments."""
    if captured(experiments) or _in_worker():
        return
    from rldsl.cli.app import run_file

    sys.exit(run_file(Path(sys.argv[0]), experiments, sys.argv[1:]))


def _in_worker() -> bool:
    """Whether a job imports the file for the classes that it defines, perhaps with an unguarded `main(...)`."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    return started is not None and started.name.startswith(("rldsl.train.", "rldsl.play."))


def run() -> None:
    """The console script `rldsl`."""
    from rldsl.cli.app import run_rldsl

    sys.exit(run_rldsl(sys.argv[1:]))
