"""What `report`, `audit` and `results` are about: experiment files, plans, run directories, results folders, ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rldsl.cli.load import NoExperiment, load
from rldsl.cli.options import Choice
from rldsl.cli.tables import note
from rldsl.plan.overrides import apply, matches
from rldsl.plan.plan import load_plan, make_plan
from rldsl.report.entry import Entry, entries_of, entry_of
from rldsl.report.result import Result, read_result, result_files
from rldsl.report.run_result import trial_results
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.store.errors import SessionNotFound, StoreError
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
    left_out: Counter[str] = field(default_factory=Counter)
    """The searches of run directories, and how many trials each has: a benchmark has none of them."""
    unreadable: int = 0
    """Trials and results that could not be read, each of which was told."""

    @classmethod
    def of(cls, choice: Choice, more: Iterable[Path], runs: Path, experiments: Path | None) -> Sources:
        """The sources of a command line: the first with its options, and more of them."""
        sources = cls(runs, experiments, choice.only or ())
        sources.add(choice.file, choice)
        for source in more:
            sources.add(source)
        return sources

    def add(self, source: Path, choice: Choice | None = None) -> None:
        """Adds a source; `choice` has the options for the first one, if it is an experiment file."""
        if source.is_dir():
            self._add_folder(source)
        elif source.suffix == ".py":
            chosen = choice or Choice(source, only=list(self.only))
            plan = chosen.selected(self.runs, sampled=False, overridden=True).plan
            own = {part.name for part in plan.parts if not part.overrides}
            self.add_planned(_named_apart(entry) if entry.experiment in own else entry for entry in entries_of(plan))
        elif source.suffix == ".json" and source.exists():
            self.add_planned(entry for entry in entries_of(load_plan(source)) if not entry.searched)
        else:
            self._add_sessions(str(source))

    def leave_out(self, sentence: str) -> None:
        """Tells of a trial or result that cannot be read."""
        self.unreadable += 1
        note(sentence)

    def add_planned(self, entries: Iterable[Entry]) -> None:
        """Adds entries, and their sessions in the run directory, whatever the experiment was called in training."""
        existing = Runs(self.runs).existing()
        for entry in entries:
            row = entry.row()
            directories = [path for seed in entry.seeds if (path := row.directory(seed)) in existing]
            self.entries.append(entry)
            for found in trial_results((SessionDir(self.runs / path) for path in directories), self.leave_out):
                self.results.append(replace(found, experiment=entry.experiment))

    def _add_folder(self, folder: Path) -> None:
        if sessions := list(Runs(folder).sessions()):
            self._leave_out(one for one in sessions if _of_search(one))
            self._add_trained(trial_results((one for one in sessions if not _of_search(one)), self.leave_out), folder)
        elif files := list(result_files(folder)):
            self.folder = None if self.only else folder
            self._add_committed(self._readable(files), folder)
        else:
            raise StoreError(f"{folder} contains neither results nor sessions")

    def _add_sessions(self, text: str) -> None:
        """Adds the trials of the sessions whose id begins with a text, with all their seeds."""
        sessions = list(Runs(self.runs).sessions())
        trials = {one.trial for one in sessions if one.id.startswith(text)}
        if not trials:
            self._refuse(text)
        named = [one for one in sessions if one.trial in trials]
        trained = {one.trial for one in named if not _of_search(one)}  # a search may have had the same settings
        self._add_trained(
            trial_results((one for one in named if one.trial not in trained or not _of_search(one)), self.leave_out),
            self.runs,
        )

    def _refuse(self, text: str) -> None:
        if not self.runs.is_dir():
            raise StoreError(f"there is no file or folder {text}, and no run directory {self.runs}")
        try:
            Runs(self.runs).find(text)  # raises, with the nearest names
        except SessionNotFound as error:
            raise SessionNotFound(f"there is no file or folder {text}, and {error}") from None

    def _leave_out(self, sessions: Iterable[SessionDir]) -> None:
        trials = {(one.recorded().experiment, one.trial) for one in sessions}
        self.left_out.update(name for name, _ in trials if _chosen(name, self.only))

    def _add_trained(self, results: Iterable[Result], folder: Path) -> None:
        """Adds trials with the entries that they are checked against, of the folder of experiments.

        These are the experiments with the same settings; without one, that with the name which the sessions recorded;
        without it, what the sessions say of themselves.
        """
        declared = self._declared(folder)
        added: dict[tuple[str, str], Entry] = {}
        for result in results:
            same = [entry for entry in declared if entry.trial.id == result.trial]
            named = [entry for entry in declared if entry.experiment == result.experiment]
            undeclared = [result] if _chosen(result.experiment, self.only) else []
            for entry in same or named or self._entries(undeclared):
                if _chosen(entry.experiment, self.only):
                    added[entry.experiment, entry.trial.id] = entry
                    self.results.append(replace(result, experiment=entry.experiment))
        self.entries += added.values()

    def _add_committed(self, results: Iterable[Result], folder: Path) -> None:
        """Adds the results of a folder with all entries of the folder of experiments: they belong together by name."""
        chosen = [one for one in results if _chosen(one.experiment, self.only)]
        declared = [entry for entry in self._declared(folder) if _chosen(entry.experiment, self.only)]
        self.entries += declared or list(self._entries(chosen))
        self.results += chosen

    def _declared(self, folder: Path) -> list[Entry]:
        experiments = self.experiments or folder.resolve().parent / EXPERIMENTS
        if not experiments.is_dir():
            if self.experiments is not None:
                raise SpecError(f"{experiments} is not a folder of experiment files")
            return []
        return benchmark_entries(experiments)

    def _readable(self, files: Iterable[Path]) -> Iterator[Result]:
        """The results in files; a note for each that cannot be read."""
        for file in files:
            try:
                yield read_result(file)
            except StoreError as error:
                self.leave_out(f"left out: {error}")

    def _entries(self, results: Iterable[Result]) -> Iterator[Entry]:
        """What results say of themselves; a note for each whose settings this version cannot read."""
        for result in results:
            try:
                yield entry_of(result)
            except SpecError as error:
                self.leave_out(f"{result.experiment} ({result.trial}) is left out: {error}")


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


def _named_apart(entry: Entry) -> Entry:
    """An entry of sessions that were trained with overrides has the options in its name."""
    sources = dict.fromkeys(one.source for one in entry.overrides)
    return replace(entry, experiment=" ".join([entry.experiment, *sources])) if sources else entry


def _of_search(session: SessionDir) -> bool:
    return session.seed is not None and session.seed >= SEARCH_SEEDS_FROM


def _chosen(name: str, only: Sequence[str]) -> bool:
    return not only or any(matches(one, name) for one in only)
