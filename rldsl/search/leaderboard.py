"""The leaderboard of a search: its trials, best first. The terminal, the monitor and reports show the same rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rldsl.search.history import History, TrialHistory
from rldsl.search.schedule import Schedule, schedule_of
from rldsl.spec.experiment import Experiment

TrialState = Literal["new", "resume", "running", "paused", "done", "failed"]


@dataclass(frozen=True)
class RankedTrial:
    """A trial of a search."""

    number: int
    id: str
    point: Mapping[str, Any]
    """The settings that the search chose."""
    rung: int | None
    """The highest rung that it has reached."""
    target: int | None
    """The rung that it is trained for; the reached one if it does not run."""
    seeds: int
    """Seeds that its value is computed from; those that train for the first rung if it has no value yet."""
    value: float | None
    """Its value at the rung that it has reached; None without one, or if no episode has ended."""
    state: TrialState
    seconds: float
    reason: str | None
    """Why it failed."""

    def data(self) -> dict[str, Any]:
        """The trial as JSON."""
        return {
            "trial": self.number,
            "id": self.id,
            "settings": dict(self.point),
            "rung": self.rung,
            "seeds": self.seeds,
            "value": self.value,
            "state": self.state,
            "seconds": round(self.seconds, 1),
            "reason": self.reason,
        }


def leaderboard(history: History, experiment: Experiment, interrupted: Collection[int] = ()) -> list[RankedTrial]:
    """The trials by the rung that they have reached, then by value, best first; those without a value, failed ones.

    Values at different rungs are not comparable: a trial that was promoted has beaten those that were not.
    `interrupted` are the numbers of trials that were started for a rung and that nothing trains any more.
    """
    schedule = schedule_of(experiment)
    ranked = sorted(history.trials, key=lambda trial: _order(trial, schedule))
    return [_row(trial, schedule, trial.number in interrupted) for trial in ranked]


def best_trials(history: History, experiment: Experiment, count: int) -> list[RankedTrial]:
    """The best trials of the leaderboard, at most `count`; failed trials and those without a value are never best."""
    rows = leaderboard(history, experiment)
    return [row for row in rows if row.value is not None and row.state != "failed"][:count]


def _order(trial: TrialHistory, schedule: Schedule) -> tuple[bool, int, float, int]:
    reached = -1 if trial.reached is None else trial.reached
    score = schedule.objective.score(trial.values[reached].values()) if trial.values else -math.inf
    return trial.failed is not None, -reached, -score, trial.number


def _row(trial: TrialHistory, schedule: Schedule, interrupted: bool) -> RankedTrial:
    reached = trial.reached
    values = () if reached is None else trial.values[reached].values()
    value = schedule.objective.value(values)
    return RankedTrial(
        number=trial.number,
        id=trial.id,
        point=trial.point,
        rung=reached,
        target=trial.started if trial.running else reached,
        seeds=len(values) or len(schedule.seeds[trial.started or 0]),
        value=None if math.isnan(value) else value,
        state=_state(trial, schedule, interrupted),
        seconds=trial.seconds,
        reason=trial.failed,
    )


def _state(trial: TrialHistory, schedule: Schedule, interrupted: bool) -> TrialState:
    if trial.failed is not None:
        return "failed"
    if trial.running:
        return "resume" if interrupted else "running"
    if trial.reached is None:
        return "new"
    return "done" if trial.reached == schedule.rungs - 1 else "paused"
