"""The experiments of a file: those that it passes to `main(...)`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from rldsl.builders.after import check_after
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.spec.errors import SpecError, line_of_user
from rldsl.spec.experiment import Experiment
from rldsl.spec.user_error import user_error
from rldsl.spec.user_file import MAIN, load_user_file
from rldsl.store.errors import StoreError

Declared = Sequence[ExperimentBuilder | Experiment]

_loaded: dict[Path, Declared] = {}
_modules: dict[Path, ModuleType] = {}
_captured: list[Declared] | None = None


class NoExperiment(SpecError):
    """A file that declares no experiment."""


def check_declared(experiments: Sequence[object]) -> None:
    """Refuses anything but experiments as arguments of `main(...)`."""
    if not experiments:
        raise SpecError("main() needs at least one experiment: main(experiment, ...)", line_of_user())
    for one in experiments:
        if isinstance(one, list | tuple):
            raise SpecError(
                f"main() takes experiments, got a {type(one).__name__}: unpack it, main(*...)", line_of_user()
            )
        if not isinstance(one, ExperimentBuilder | Experiment):
            given = f"got {type(one).__name__}"
            raise SpecError(f"main() takes experiments, {given}: experiment(...).agent(...).env(...)", line_of_user())


def captured(experiments: Declared) -> bool:
    """Whether a file is being loaded by another command, which only wants to know its experiments."""
    if _captured is None:
        return False
    _captured.append(experiments)
    return True


def remember(file: Path, experiments: Declared) -> None:
    """Records the experiments of the file that runs as the main program."""
    _loaded[file.resolve()] = experiments


def load(file: Path) -> list[Experiment]:
    """The complete experiments that a file declares; it is run as `python FILE` would run it."""
    if file.resolve() not in _loaded:
        _loaded[file.resolve()] = _capture(file)
    declared = _loaded[file.resolve()]
    built = [one.build() if isinstance(one, ExperimentBuilder) else one for one in declared]
    check_after(declared, built, "main(...)")
    return built


def load_classes(file: Path) -> None:
    """Makes the classes of a loaded file importable under the name of the file, as implementations are."""
    if file.stem not in sys.modules:
        sys.modules[file.stem] = _modules.get(file.resolve()) or sys.modules[MAIN]


def load_all(files: Sequence[Path]) -> list[Experiment]:
    """The experiments of several files. Files without any, such as modules of shared settings, are skipped."""
    if len(files) == 1:
        return load(files[0])
    found = []
    for file in files:
        try:
            found += load(file)
        except NoExperiment:
            continue
    if not found:
        raise SpecError(f"none of the {len(files)} files declares an experiment")
    return found


def _capture(file: Path) -> Declared:
    global _captured
    _captured, arguments = [], sys.argv
    sys.argv = [str(file)]
    try:
        _modules[file.resolve()] = load_user_file(file, MAIN)
        experiments = [one for declared in _captured for one in declared]
    except (SpecError, StoreError):
        raise
    except Exception as error:
        raise user_error(error, file) from error
    finally:
        _captured, sys.argv = None, arguments
    if not experiments:
        raise NoExperiment(f"{file} declares no experiment: its last line should be main(...)")
    return experiments
