"""The experiments of a file: what it hands to `main(...)`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from rldsl.builders.experiment import ExperimentBuilder
from rldsl.spec.errors import SpecError, suggestion
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
    """`slurm`: what launchers/slurm.py declares, or that kind as it is; or what the file declares that is named."""
    file = Path(on if on.endswith(".py") else f"launchers/{on}.py")
    if file.is_file():
        return launcher_of(file)
    if on.endswith(".py"):
        raise SpecError(f"--on {on}: there is no such file")
    known = [*Launcher.kinds, *(path.stem for path in launcher_files())]
    if on not in Launcher.kinds:
        raise SpecError(f"--on {on}: there is no such launcher; {suggestion(on, known)}")
    return Launcher.parse(on, root="--on")


def launcher_files() -> list[Path]:
    """The launchers of the project that this command runs in."""
    return sorted(Path("launchers").glob("*.py"))


def launcher_of(file: Path) -> Launcher:
    """The launcher that a file declares; classes that it defines are there from then on."""
    name = f"launcher_{file.stem}"
    spec = spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [value for value in vars(module).values() if isinstance(value, Launcher)]
    if len(found) != 1:
        raise SpecError(f"{file}: the file should declare one launcher, it declares {len(found)}")
    return found[0]
