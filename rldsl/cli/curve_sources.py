"""What `plot` draws: experiment files, saved plans, run directories, ids of sessions or trials, and results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rldsl.cli.options import Choice
from rldsl.cli.tables import note
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import matches
from rldsl.plan.plan import Plan, load_plan
from rldsl.report.result import read_result, result_files
from rldsl.report.trial_curves import TrialCurves, of_plan, of_results, of_sessions
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.errors import StoreError
from rldsl.store.plan_file import FORMAT as PLAN
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir


def sources(choice: Choice, more: Sequence[str], runs: Path) -> list[TrialCurves]:
    """The trials of all sources. Overrides are for experiment files; `--only` is for everything."""
    names = [str(choice.file), *more]
    files = [Path(name) for name in names if name.endswith(".py")]
    planned = _of_files(choice, files, runs) if files else []
    others = [trial for name in names if not name.endswith(".py") for trial in _of_source(name, runs)]
    if not files:
        _refuse_overrides(choice)
    trials = {(one.experiment, one.trial): one for one in [*planned, *_selected(others, choice.only or ())]}
    if not trials:
        raise SpecError(f"no session of {', '.join(names)} has been started in {runs}")
    return list(trials.values())


def _of_files(choice: Choice, files: Sequence[Path], runs: Path) -> list[TrialCurves]:
    first, *more = files
    return _of_plan(replace(choice, file=first).selected(runs, more=more, overridden=True).plan, runs)


def _of_plan(plan: Plan, runs: Path) -> list[TrialCurves]:
    return of_plan(plan, Existing(runs), note)


def _of_source(name: str, runs: Path) -> list[TrialCurves]:
    path = Path(name)
    if path.is_dir() and not SessionDir(path).exists():
        return _of_folder(path)
    if path.suffix == ".json" and path.is_file():
        return _of_plan(load_plan(path), runs) if _is_plan(path) else of_results([read_result(path)])
    return of_sessions(Runs(runs).find_all(name), note)


def _of_folder(folder: Path) -> list[TrialCurves]:
    """A run directory, a results folder, or one family of it."""
    if sessions := list(Runs(folder).sessions()):
        return of_sessions(sessions, note)
    files = list(result_files(folder)) or sorted(folder.glob("*.json"))
    if not files:
        raise StoreError(f"{folder} contains neither sessions nor results")
    return of_results(read_result(path) for path in files)


def _is_plan(path: Path) -> bool:
    with path.open() as file:
        return PLAN in file.read(200)


def _selected(trials: Iterable[TrialCurves], only: Sequence[str]) -> list[TrialCurves]:
    known = list(trials)
    names = list(dict.fromkeys(trial.experiment for trial in known))
    for name in only if known else ():
        if not any(matches(name, one) for one in names):
            raise SpecError(f"--only {name}: there is no such experiment; {suggestion(name, names)}")
    return [one for one in known if not only or any(matches(name, one.experiment) for name in only)]


def _refuse_overrides(choice: Choice) -> None:
    given: dict[str, object] = {"--set": choice.set, "--gin": choice.gin, "--gin-file": choice.gin_file}
    given |= {"--frames": choice.frames, "--seeds": choice.seeds}
    if wrong := [name for name, value in given.items() if value]:
        raise SpecError(f"{', '.join(wrong)} selects sessions of an experiment file, and none was given")
