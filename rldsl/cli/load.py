"""The experiments of a file: those that it passes to `main(...)`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rldsl.builders.experiment import ExperimentBuilder
from rldsl.spec.errors import SpecError, line_of_user
from rldsl.spec.experiment import Experiment
from rldsl.spec.user_file import MAIN, load_user_file

Declared = Sequence[ExperimentBuilder | Experiment]

_loaded: dict[Path, Declared] = {}
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
    return [one.build() if isinstance(one, ExperimentBuilder) else one for one in _loaded[file.resolve()]]


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


def refuse_shared_names(experiments: Sequence[Experiment], files: Sequence[Path]) -> None:
    """Refuses two experiments of one name in several files, and says which files they are in."""
    for name, number in Counter(one.name for one in experiments).items():
        if number > 1:
            found = [str(file) for file in files if any(one.name == name for one in _loaded.get(file.resolve(), ()))]
            raise SpecError(
                f"two experiments are called {name}, in {' and '.join(found)}; give one another name with .named(...)"
            )


def _capture(file: Path) -> Declared:
    global _captured
    _captured, arguments = [], sys.argv
    sys.argv = [str(file)]
    try:
        load_user_file(file, MAIN)
        experiments = [one for declared in _captured for one in declared]
    finally:
        _captured, sys.argv = None, arguments
    if not experiments:
        raise NoExperiment(f"{file} declares no experiment: its last line should be main(...)")
    return experiments
