"""The state of searches: what drives each of them, how its trials stand, and their sessions as a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rldsl.launch.queues import Queues
from rldsl.launch.search_detach import Driver, find_driver
from rldsl.launch.search_trials import SearchTrials
from rldsl.plan.expand import is_adaptive
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, Row, make_plan
from rldsl.search.history import History, TrialHistory
from rldsl.search.identity import search_id
from rldsl.search.schedule import Finished, Schedule, decide, schedule_of
from rldsl.search.stages import narrow_experiment
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError
from rldsl.store.search_dir import SearchDir


@dataclass(frozen=True)
class SearchState:
    """A search as its journal and its driver describe it."""

    name: str
    planned: int
    """Trials that it will have."""
    trials: Counter[str]
    """Trials by state: `running`, interrupted and to `resume`, `paused` at a rung, `done`, `failed`."""
    finished: bool
    """Whether nothing runs and there is nothing left to do."""
    driver: Driver


def search_dir(one: Overridden, runs: Path) -> SearchDir:
    """The directory of a search, whether it exists or not."""
    return SearchDir.of(runs, one.experiment.name, search_id(one.experiment))


def search_states(searches: Sequence[Overridden], queues: Queues) -> list[SearchState]:
    """The states of those searches, stage by stage, that have been started; damaged ones are errors of `queues`."""
    for directory in (search_dir(one, queues.runs) for one in searches):
        if directory.exists() and (problem := _problem(directory)):
            queues.errors.append(problem)
    return [
        _state(stage, search_dir(one, queues.runs), queues) for one in searches for stage in _stages(one, queues.runs)
    ]


def _problem(directory: SearchDir) -> str | None:
    """Why the record of a search cannot be used."""
    try:
        directory.experiment()
    except (SpecError, StoreError) as error:
        return str(error)
    return None


def _stages(one: Overridden, runs: Path) -> Iterator[SearchDir]:
    """The directories of the stages of a search that have been started, up to one whose record is damaged."""
    while (directory := search_dir(one, runs)).exists() and not _problem(directory):
        yield directory
        experiment, history = directory.experiment(), History.of(directory.events())
        finished = isinstance(decide(history, schedule_of(experiment)), Finished)
        if not finished or experiment.search is None or experiment.search.narrow is None:
            return
        try:
            one = replace(one, experiment=narrow_experiment(one.experiment, history))
        except SpecError:  # no trial has a value
            return


def _state(directory: SearchDir, first: SearchDir, queues: Queues) -> SearchState:
    experiment = directory.experiment()
    schedule, history = schedule_of(experiment), History.of(directory.events())
    driver = find_driver(directory, queues, first)
    interrupted = {} if driver.description else interrupted_trials(directory, history, queues)
    states = Counter(_trial_state(trial, schedule, interrupted.get(trial.number)) for trial in history.trials)
    finished = isinstance(decide(history, schedule), Finished)
    return SearchState(experiment.name, schedule.trials, states, finished, driver)


def interrupted_trials(directory: SearchDir, history: History, queues: Queues) -> dict[int, str]:
    """Of a search that nothing drives, the trials that were started for a rung and that nothing trains any more.

    Each has the state of its sessions: `paused` if all of them are at a rung, otherwise `resume`.
    """
    schedule = schedule_of(directory.experiment())
    trials = SearchTrials(directory, queues.runs, schedule.seeds[-1])
    sessions = {
        trial.number: trials.sessions(trial, schedule.seeds[trial.started or 0])
        for trial in history.trials
        if trial.running
    }
    jobs = queues.jobs(one.id for seeds in sessions.values() for one in seeds)
    live = {id for id, job in jobs.items() if job.live}
    return {
        number: "paused" if all(one.state == "paused" for one in seeds) else "resume"
        for number, seeds in sessions.items()
        if not any(one.state == "running" or one.id in live for one in seeds)
    }


def _trial_state(trial: TrialHistory, schedule: Schedule, interrupted: str | None) -> str:
    if trial.failed is not None:
        return "failed"
    if trial.running or trial.reached is None:
        return interrupted or "running"
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


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is, for its plan."""

    finished: bool
    """Whether no stage of it has anything left to train; its validation aside."""
    unchosen: int
    """Trials of an adaptive search that are still to be chosen."""


def search_progress(chosen: Sequence[Overridden], runs: Path) -> dict[str, SearchProgress]:
    """The progress of those experiments that are searches, by name."""
    return {one.experiment.name: _progress(one, runs) for one in chosen if one.experiment.sampled}


def _progress(one: Overridden, runs: Path) -> SearchProgress:
    search, schedule, stages = one.experiment.search, schedule_of(one.experiment), list(_stages(one, runs))
    assert search is not None
    first = History.of(stages[0].events()) if stages else History()
    chosen = sum(trial.started is not None or trial.failed is not None for trial in first.trials)
    all_stages = len(stages) == (1 if search.narrow is None else 2)
    finished = all_stages and isinstance(decide(first, schedule), Finished) and all(map(_finished, stages[1:]))
    return SearchProgress(finished, max(0, schedule.trials - chosen) if is_adaptive(one.experiment) else 0)


def _finished(directory: SearchDir) -> bool:
    history = History.of(directory.events())
    return isinstance(decide(history, schedule_of(directory.experiment())), Finished)


def current_plan(chosen: Sequence[Overridden], runs: Path, progress: Mapping[str, SearchProgress]) -> Plan:
    """The plan of experiments; of searches that are finished or adaptive, the trials of the first stage so far."""

    def rows() -> Iterator[Row]:
        for one in chosen:
            known = progress.get(one.experiment.name)
            if known is None or not (known.finished or is_adaptive(one.experiment)):
                yield from make_plan([one]).rows()
                continue
            if (directory := search_dir(one, runs)).exists():
                yield from (replace(row, experiment=one.experiment.name) for row in _started_rows(directory, runs))

    return Plan(make_plan(chosen).parts, rows)


def _started_rows(directory: SearchDir, runs: Path) -> Iterator[Row]:
    schedule = schedule_of(directory.experiment())
    trials = SearchTrials(directory, runs, schedule.seeds[-1])
    for trial in History.of(directory.events()).trials:
        if trial.started is not None:
            yield replace(trials.row(trial), seeds=schedule.seeds[trial.started])
