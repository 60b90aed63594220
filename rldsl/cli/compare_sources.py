"""What `compare` compares: a path, an experiment in it, or an experiment of the run directory; perhaps at a commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rldsl.cli.options import Choice
from rldsl.cli.tables import note
from rldsl.plan.overrides import matches
from rldsl.report.result import Result
from rldsl.report.results_at import results_at, results_in
from rldsl.report.run_result import trial_results
from rldsl.spec.errors import SpecError, suggestion
from rldsl.store.errors import StoreError
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir


def load_source(source: str, runs: Path, revision: str | None, only: Sequence[str]) -> list[Result]:
    """The results of PATH, of PATH:EXPERIMENT, or of EXPERIMENT in `runs`; `only` selects experiments of a path."""
    path, name = _path_and_name(source, runs)
    if revision is not None:
        results = results_at(revision, path)
    elif path.suffix == ".py":
        results = _of_file(path, runs)
    else:
        results = _of_path(path)
    if not results:
        raise StoreError(f"{path}{f' at {revision}' if revision else ''} contains neither results nor sessions")
    return _selected(results, [name] if name else only, path)


def _path_and_name(source: str, runs: Path) -> tuple[Path, str | None]:
    before, colon, after = source.rpartition(":")
    if colon and Path(before).exists():
        return Path(before), after
    if Path(source).exists() or source.endswith((".py", ".json")):
        return Path(source), None
    if not runs.exists():
        raise SpecError(f"{source} is neither a path nor an experiment in {runs}, which does not exist")
    return runs, source


def _of_file(file: Path, runs: Path) -> list[Result]:
    existing = Runs(runs).existing()
    plan = Choice(file).selected(runs, sampled=False).plan
    rows = [(row, [row.directory(seed) for seed in row.seeds]) for row in plan.rows()]
    found = ((row, [SessionDir(runs / path) for path in paths if path in existing]) for row, paths in rows)
    return [_named(one, row.experiment) for row, sessions in found for one in trial_results(sessions, note)]


def _named(result: Result, experiment: str) -> Result:
    """A result under the name that the file gives it: sessions may have been trained under another one."""
    return replace(result, experiment=experiment)


def _of_path(path: Path) -> list[Result]:
    if not path.exists():
        raise StoreError(f"{path} does not exist")
    sessions = list(Runs(path).sessions()) if path.is_dir() else []
    return list(trial_results(sessions, note)) if sessions else results_in(path)


def _selected(results: Iterable[Result], names: Sequence[str], path: Path) -> list[Result]:
    """The results of experiments, or trials, with these names."""
    known = list(results)
    for name in names:
        if not any(_is(name, one) for one in known):
            experiments = sorted({one.experiment for one in known})
            raise SpecError(f"{path} has no experiment {name}; {suggestion(name, experiments)}")
    return [one for one in known if not names or any(_is(name, one) for name in names)]


def _is(name: str, result: Result) -> bool:
    return matches(name, result.experiment) or result.trial == name
