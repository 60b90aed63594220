"""Running a search: claims its directory, chooses the backend of its launcher, drives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rldsl.launch.code import FrozenCode, freeze
from rldsl.launch.devices import on_gpu, refuse_devices
from rldsl.launch.follow import stop_signals
from rldsl.launch.jobs import Resources
from rldsl.launch.search import SearchDriver, SearchResult
from rldsl.launch.search_backend import SearchBackend
from rldsl.launch.search_local import LocalSearchBackend
from rldsl.launch.search_observer import SearchObserver
from rldsl.launch.search_queue import QueueSearchBackend
from rldsl.plan.overrides import Overridden
from rldsl.search.failures import FailureRules
from rldsl.search.identity import search_id
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.spec.launcher import Local
from rldsl.store.search_dir import SearchDir


@dataclass(frozen=True)
class SearchRequest:
    """Which search to run. Where it runs is the experiment's `launcher`."""

    search: Overridden
    runs: Path
    file: Path
    """The experiment file, for the classes that it defines."""
    command: Sequence[str]
    """The command of the user, for the provenance of the sessions."""
    fail_fast: bool = False
    """Stop at the first trial that fails."""
    retry_failed: bool = False
    """Train failed trials again."""
    code: FrozenCode | None = None
    """The copy of the code that jobs of a queue run; None: a new one."""
    note: Callable[[str], None] = lambda sentence: None
    """Receives what the user should know, such as files that were not copied."""

    def freeze(self) -> FrozenCode:
        """The copy of the code that jobs of a queue run."""
        code = self.code or freeze(self.file, self.runs, self.experiment.launcher.include)
        for sentence in code.left_out:
            self.note(sentence)
        return code

    @property
    def experiment(self) -> Experiment:
        return self.search.experiment

    @property
    def directory(self) -> SearchDir:
        """The directory of the search, whether it exists or not."""
        return SearchDir.of(self.runs, self.experiment.name, search_id(self.experiment))

    def create_directory(self) -> SearchDir:
        """Creates the directory of the search; in an existing one, writes an experiment that has changed."""
        return SearchDir.create(self.runs, self.experiment, search_id(self.experiment), self.search.overrides)

    @property
    def rules(self) -> FailureRules:
        assert self.experiment.search is not None
        return FailureRules(self.fail_fast, self.experiment.search.max_failures)


def run_search(request: SearchRequest, observer: SearchObserver) -> SearchResult:
    """Starts or continues a search, and returns when it has ended; a finished one is left as it is.

    Raises `AlreadyRunning` if another process drives it.
    """
    with request.directory.claim(), stop_signals() as stop:
        directory = request.create_directory()
        directory.refuse_damage()
        driver = SearchDriver(directory, request.runs, _backend(request, directory), observer, request.rules)
        return driver.run(stop, retry_failed=request.retry_failed)


def _backend(request: SearchRequest, directory: SearchDir) -> SearchBackend:
    experiment = request.experiment
    refuse_devices([experiment], experiment.launcher)
    if not isinstance(experiment.launcher, Local):
        refuse_results_elsewhere(experiment)
        return QueueSearchBackend(request.runs, request.freeze(), request.command, experiment.launcher)
    need = Resources.of(experiment, on_gpu(experiment, experiment.launcher))
    return LocalSearchBackend(directory, request.runs, request.file, request.command, experiment.launcher, need)


def refuse_results_elsewhere(experiment: Experiment) -> None:
    """A search needs the results of its sessions."""
    if not experiment.launcher.results_here:
        where = "its results must come home, as with results='user/name' on the Hugging Face Hub"
        raise SpecError(f"{experiment.name}: a search cannot run on this {experiment.launcher.kind}: {where}")
