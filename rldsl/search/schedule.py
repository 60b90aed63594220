"""What a search does next, as a pure function of its history: promote a trial, start a new one, wait, or end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from rldsl.plan.expand import count
from rldsl.search.asha import Asha
from rldsl.search.history import History
from rldsl.search.objective import Objective
from rldsl.spec.experiment import Experiment
from rldsl.spec.search import Asha as AshaMethod
from rldsl.spec.search import Nevergrad


class Promote(NamedTuple):
    """Train a paused trial on to this rung."""

    trial: int
    rung: int


class StartNew(NamedTuple):
    """Train a new trial, of this number, to the first rung."""

    trial: int


class Wait(NamedTuple):
    """Nothing can be decided before a trial that is running has ended."""


class Finished(NamedTuple):
    """Nothing runs and there is nothing left to do."""


Decision: TypeAlias = Promote | StartNew | Wait | Finished


@dataclass(frozen=True)
class Schedule:
    """The rungs of a search, and the rule that promotes trials. Methods without early stopping have a single rung."""

    trials: int
    frames: tuple[int, ...]
    """Frames of each rung; the last is the budget."""
    seeds: tuple[tuple[int, ...], ...]
    """Seeds of each rung, the same for every trial. Those of a rung include those of the rungs below."""
    eta: int = 3
    min_results: int = 6
    stopping: bool = False
    parallel: int | None = None
    """Trials that may run at the same time; None: any number."""
    objective: Objective = field(default_factory=Objective)

    @property
    def rungs(self) -> int:
        return len(self.frames)

    def until(self, rung: int) -> int | None:
        """The frame at which sessions pause for a rung; None for the last one, which is the end of the budget."""
        return self.frames[rung] if rung < self.rungs - 1 else None


def decide(history: History, schedule: Schedule) -> Decision:
    """The next decision. It is asked whenever there is room for another trial, and again until there is none."""
    running = sum(trial.running for trial in history.trials)
    if schedule.parallel is not None and running >= schedule.parallel:
        return Wait()
    rule = Asha(schedule.rungs, schedule.eta, schedule.min_results, schedule.objective)
    promoted = rule.continuation(history) if schedule.stopping else rule.promotion(history)
    if promoted is None and (new := _new_trial(history, schedule)) is not None:
        return StartNew(new)
    if promoted is None and running:
        return Wait()
    if promoted is None and not schedule.stopping:
        promoted = rule.last_promotion(history)
    if promoted is None or promoted.reached is None:
        return Finished()
    return Promote(promoted.number, promoted.reached + 1)


def _new_trial(history: History, schedule: Schedule) -> int | None:
    """The first trial that was suggested and not started, or the next one; None if all were started."""
    for trial in history.trials:
        if trial.started is None and trial.failed is None:
            return trial.number
    return len(history.trials) if len(history.trials) < schedule.trials else None


def schedule_of(experiment: Experiment) -> Schedule:
    """The schedule of an experiment with a search, or of one trial without."""
    search, budget, seeds = experiment.search, experiment.budget.frames, tuple(experiment.session_seeds)
    if search is None:
        return Schedule(1, (budget,), (seeds,))
    method = search.method
    if isinstance(method, AshaMethod):
        frames = method.rungs(budget)
        return Schedule(
            trials=count(experiment),
            frames=frames,
            seeds=tuple(seeds[: method.seeds_at(rung)] for rung, _ in enumerate(frames)),
            eta=method.eta,
            min_results=max(method.eta, method.results_needed),
            stopping=method.stopping,
            objective=Objective(search.objective, search.maximize, method.last),
        )
    return Schedule(
        trials=count(experiment),
        frames=(budget,),
        seeds=(seeds,),
        parallel=method.parallel if isinstance(method, Nevergrad) else None,
        objective=Objective(search.objective, search.maximize),
    )
