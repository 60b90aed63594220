"""A search in this process: its packs train one after the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from rldsl.api.run import Interrupt, train_pack
from rldsl.launch.follow import StopSignals
from rldsl.launch.observer import FollowedSession
from rldsl.launch.search import SearchDriver
from rldsl.launch.search_backend import Ended, SearchPack
from rldsl.plan.overrides import Overridden
from rldsl.search.failures import FailureRules
from rldsl.search.history import History
from rldsl.search.identity import search_id
from rldsl.spec.errors import SpecError
from rldsl.store.journal import Event
from rldsl.store.search_dir import SearchDir


def search_in_process(one: Overridden, runs: Path, interrupt: Interrupt, verbose: bool) -> list[str]:
    """Runs or continues a search; returns the directories of its sessions, relative to the run directory."""
    experiment, id = one.experiment, search_id(one.experiment)
    assert experiment.search is not None
    stop = StopSignals()
    with SearchDir.of(runs, experiment.name, id).claim():
        directory = SearchDir.create(runs, experiment, id, one.overrides)
        backend = _ThisProcess(runs, interrupt, stop, verbose)
        rules = FailureRules(max_failures=experiment.search.max_failures)
        driver = SearchDriver(directory, runs, backend, _Silent(), rules)
        result = driver.run(stop)
    if stop.count:
        raise KeyboardInterrupt
    if result.problem is not None:
        raise SpecError(f"{experiment.name}: {result.problem}")
    return [planned.directory for trial in result.history.trials for planned in driver.sessions_of(trial)]


class _ThisProcess:
    """A `SearchBackend` that trains a pack whenever it is polled."""

    def __init__(self, runs: Path, interrupt: Interrupt, stop: StopSignals, verbose: bool) -> None:
        self.runs, self.signal, self.stop, self.verbose = runs, interrupt, stop, verbose
        self.waiting: list[SearchPack] = []

    @property
    def workers(self) -> int:
        return 1

    @property
    def busy(self) -> Collection[str]:
        return {planned.id for pack in self.waiting for planned in pack.sessions}

    def capacity(self) -> int:
        return 0 if self.waiting else 1

    def adopt(self, packs: Sequence[SearchPack]) -> None:
        """Nothing runs in this process yet."""

    def start(self, plan: Path, packs: Sequence[SearchPack]) -> None:
        self.waiting.extend(packs)

    def poll(self) -> list[Ended]:
        ended: list[Ended] = []
        while self.waiting and not self.stop.count:
            pack = self.waiting.pop(0)
            problem = self._train(pack)
            ended += [Ended(planned.id, problem) for planned in pack.sessions]
        return ended

    def _train(self, pack: SearchPack) -> str | None:
        problem = None
        try:
            train_pack(pack.sessions, self.runs, self.signal, self.verbose, pack.until)
        except Exception as error:  # the trial has failed, by the journals of its sessions
            problem = f"{type(error).__name__}: {error}"
        self.stop.count += self.signal.reason is not None
        return problem

    def pause(self) -> float:
        return 0.0

    def interrupt(self, requests: int) -> bool:
        self.cancel()
        return True

    def cancel(self) -> None:
        self.waiting.clear()

    def abort(self) -> None:
        self.cancel()


class _Silent:
    """A `SearchObserver` that shows nothing: trained sessions are printed one by one."""

    def journalled(self, event: Event, history: History) -> None: ...

    def progress(self, history: History, running: Collection[FollowedSession]) -> None: ...

    def stopping(self, requests: int) -> None: ...
