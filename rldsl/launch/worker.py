"""Running a module of rldsl in a separate process, for commands that must not import torch or gymnasium."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def run_worker(module: str, arguments: Sequence[str]) -> int:
    """Runs `python -m module` in this terminal until it ends; returns its exit code."""
    process = subprocess.Popen(_command(module, arguments), env=_environment())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the worker received Ctrl-C too and is about to end


def lines_of_worker(module: str, arguments: Sequence[str]) -> Iterator[str]:
    """The lines that `python -m module` prints, as it prints them; closing the iterator terminates the process."""
    with subprocess.Popen(
        _command(module, arguments), env=_environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield from process.stdout
        finally:
            process.terminate()


def _command(module: str, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _environment() -> dict[str, str]:
    return {**ONE_THREAD, **os.environ}
