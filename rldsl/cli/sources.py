"""What `report`, `audit` and `results` are about: experiment files, plans, run directories, results folders, ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rldsl.cli.load import NoExperiment, load
from rldsl.cli.options import Choice
from rldsl.plan.overrides import apply
from rldsl.plan.plan import load_plan, make_plan
from rldsl.report.entry import Entry, entries_of, entry_of
from rldsl.report.result import Result, read_result, result_files
from rldsl.report.run_result import result_of, trial_results
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.store.errors import StoreError
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir

EXPERIMENTS = "experiments"


@dataclass
class Sources:
    """The entries that were named, and the results that exist."""

    runs: Path
    experiments: Path | None = None
    """The folder of experiment files that results are checked against; None: `experiments` beside their folder."""
    only: Sequence[str] = ()
    entries: list[Entry] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    folder: Path | None = None
    """The results folder, if one was named, with all its results."""

    def add(self, source: Path, choice: Choice | None = None) -> None:
        """Adds a source; `choice` has the options for the first one, if it is an experiment file."""
        if source.is_dir():
            self._add_folder(source)
        elif source.suffix == ".py":
            chosen = choice or Choice(source, only=list(self.only))
            self.add_planned(entries_of(chosen.plan(sampled=False)))
        elif source.suffix == ".json" and source.exists():
            self.add_planned(entry for entry in entries_of(load_plan(source)) if not entry.searched)
        else:
            self._add_sessions(str(source))

    def add_planned(self, entries: Iterable[Entry]) -> None:
        """Adds entries, and their sessions in the run directory."""
        existing = Runs(self.runs).existing()
        for entry in entries:
            row = entry.row()
            directories = [path for seed in entry.seeds if (path := row.directory(seed)) in existing]
            self.entries.append(entry)
            if directories:
                self.results.append(result_of([SessionDir(self.runs / path) for path in directories]))

    def _add_folder(self, folder: Path) -> None:
        if Runs(folder).existing():
            self._add_results(list(trial_results(Runs(folder).sessions())), folder)
        elif files := list(result_files(folder)):
            self.folder = None if self.only else folder
            self._add_results([read_result(path) for path in files], folder, everything=True)
        else:
            raise StoreError(f"{folder} contains neither results nor sessions")

    def _add_sessions(self, text: str) -> None:
        """Adds the trials of the sessions whose id begins with a text, with all their seeds."""
        sessions = list(Runs(self.runs).sessions())
        trials = {one.trial for one in sessions if one.id.startswith(text)}
        if not trials:
            Runs(self.runs).find(text)  # raises, with the nearest names
        self._add_results(list(trial_results(one for one in sessions if one.trial in trials)), self.runs)

    def _add_results(self, results: list[Result], folder: Path, everything: bool = False) -> None:
        """Adds results with the entries that they are checked against: by name, of the folder of experiments."""
        declared = {entry.experiment: entry for entry in self._declared(folder)}
        results = [one for one in results if _chosen(one.experiment, self.only)]
        names = [one.experiment for one in results]
        if declared:
            self.entries += [entry for name, entry in declared.items() if everything or name in names]
        if not (declared and everything):
            self.entries += [entry_of(one) for one in results if one.experiment not in declared]
        self.results += results

    def _declared(self, folder: Path) -> list[Entry]:
        experiments = self.experiments or folder.resolve().parent / EXPERIMENTS
        if not experiments.is_dir():
            if self.experiments is not None:
                raise SpecError(f"{experiments} is not a folder of experiment files")
            return []
        return [entry for entry in benchmark_entries(experiments) if _chosen(entry.experiment, self.only)]


def benchmark_entries(folder: Path) -> list[Entry]:
    """The entries of all experiment files of a folder: every experiment but searches and grids."""
    declared = [one for file in sorted(folder.glob("**/*.py")) for one in _experiments(file)]
    plan = make_plan(apply([one for one in declared if one.search is None], []))
    return list(entries_of(plan))


def _experiments(file: Path) -> list[Experiment]:
    """The experiments of a file; none of a module of shared settings."""
    try:
        return load(file)
    except NoExperiment:
        return []


def _chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(name == one or name.endswith(f"/{one}") or name.startswith(f"{one}/") for one in only)
