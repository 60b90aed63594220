"""The state of searches: what drives each of them, how its trials stand, and their sessions as a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rldsl.launch.queues import Queues
from rldsl.launch.search_detach import Driver, find_driver
from rldsl.launch.search_trials import SearchTrials
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, Row, make_plan
from rldsl.search.history import History, TrialHistory
from rldsl.search.identity import search_id
from rldsl.search.schedule import Finished, Schedule, decide, schedule_of
from rldsl.search.stages import narrow_experiment
from rldsl.store.search_dir import SearchDir


@dataclass(frozen=True)
class SearchState:
    """A search as its journal and its driver describe it."""

    name: str
    planned: int
    """Trials that it will have."""
    trials: Counter[str]
    """Trials by state: `running`, `paused` at a rung, `done`, `failed`."""
    finished: bool
    """Whether nothing runs and there is nothing left to do."""
    driver: Driver


def search_dir(one: Overridden, runs: Path) -> SearchDir:
    """The directory of a search, whether it exists or not."""
    return SearchDir.of(runs, one.experiment.name, search_id(one.experiment))


def search_states(searches: Sequence[Overridden], queues: Queues) -> list[SearchState]:
    """The states of those searches, stage by stage, that have been started."""
    return [
        _state(stage, search_dir(one, queues.runs), queues) for one in searches for stage in _stages(one, queues.runs)
    ]


def _stages(one: Overridden, runs: Path) -> Iterator[SearchDir]:
    """The directories of the stages of a search that have been started."""
    while (directory := search_dir(one, runs)).exists():
        yield directory
        experiment, history = directory.experiment(), History.of(directory.events())
        finished = isinstance(decide(history, schedule_of(experiment)), Finished)
        if not finished or experiment.search is None or experiment.search.narrow is None:
            return
        one = replace(one, experiment=narrow_experiment(one.experiment, history))


def _state(directory: SearchDir, first: SearchDir, queues: Queues) -> SearchState:
    experiment = directory.experiment()
    schedule, history = schedule_of(experiment), History.of(directory.events())
    states = Counter(_trial_state(trial, schedule) for trial in history.trials)
    finished = isinstance(decide(history, schedule), Finished)
    return SearchState(experiment.name, schedule.trials, states, finished, find_driver(directory, queues, first))


def _trial_state(trial: TrialHistory, schedule: Schedule) -> str:
    if trial.failed is not None:
        return "failed"
    if trial.running or trial.reached is None:
        return "running"
    return "done" if trial.reached == schedule.rungs - 1 else "paused"


def started_plan(chosen: Sequence[Overridden], runs: Path) -> Plan:
    """The plan of experiments; of those that are searches, it has the sessions that were started so far."""

    def rows() -> Iterator[Row]:
        for one in chosen:
            if not one.experiment.sampled:
                yield from make_plan([one]).rows()
            for directory in _stages(one, runs) if one.experiment.sampled else ():
                yield from _started_rows(directory, runs)

    return Plan(make_plan(chosen).parts, rows)


def _started_rows(directory: SearchDir, runs: Path) -> Iterator[Row]:
    schedule = schedule_of(directory.experiment())
    trials = SearchTrials(directory, runs, schedule.seeds[-1])
    for trial in History.of(directory.events()).trials:
        if trial.started is not None:
            yield replace(trials.row(trial), seeds=schedule.seeds[trial.started])
