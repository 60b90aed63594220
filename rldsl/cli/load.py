"""The experiments of a file: what it hands to `main(...)`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from rldsl.builders.experiment import ExperimentBuilder
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.spec.launcher import Launcher

Declared = Sequence[ExperimentBuilder | Experiment]

_loaded: dict[Path, Declared] = {}
_capturing: list[Declared] | None = None


def captured(experiments: Declared) -> bool:
    """Whether a file is only being looked at, and its experiments have been noted instead of run."""
    if _capturing is None:
        return False
    _capturing.append(experiments)
    return True


def know(file: Path, experiments: Declared) -> None:
    """Notes the experiments of a file that runs already."""
    _loaded[file.resolve()] = experiments


def load(file: Path) -> list[Experiment]:
    """The experiments that a file declares, complete; the file runs as `python FILE` would run it."""
    if file.resolve() not in _loaded:
        _loaded[file.resolve()] = _run(file)
    return [one.build() if isinstance(one, ExperimentBuilder) else one for one in _loaded[file.resolve()]]


def _run(file: Path) -> Declared:
    global _capturing
    if not file.is_file():
        raise SpecError(f"there is no file {file}")
    _capturing, before = [], (sys.argv, sys.path[:])
    sys.argv, sys.path[:0] = [str(file)], [str(file.resolve().parent)]
    try:
        runpy.run_path(str(file), run_name="__main__")
        found = [one for declared in _capturing for one in declared]
    finally:
        _capturing, (sys.argv, sys.path[:]) = None, before
    if not found:
        raise SpecError(f"{file} declares no experiment: its last line should be main(...)")
    return found


def load_launcher(on: str) -> Launcher:
    """`local`, or the launcher that a file such as launchers/mycluster.py declares."""
    if not on.endswith(".py"):
        return Launcher.parse(on, root="--on")
    if not Path(on).is_file():
        raise SpecError(f"--on {on}: there is no such file")
    found = [value for value in runpy.run_path(on).values() if isinstance(value, Launcher)]
    if len(found) != 1:
        raise SpecError(f"--on {on}: the file should declare one launcher, it declares {len(found)}")
    return found[0]
