"""Validation: the best configurations of a search and the current settings, on the experiment's own seeds.

The value of a winner is the highest of many noisy values, so it is too high on average. Search seeds and the seeds of
the experiment are disjoint: scores on the latter are not chosen. The plan is an ordinary one, whose sessions have the
ids that `train` gives them: those that are done are reused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rldsl.maths.statistics import UNKNOWN, Interval, difference_interval, probability_of_improvement
from rldsl.plan.existing import Existing
from rldsl.plan.expand import trial_of
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Part, Plan, Row
from rldsl.plan.work import work
from rldsl.search.leaderboard import RankedTrial
from rldsl.search.objective import session_value
from rldsl.spec.experiment import Experiment, Trial
from rldsl.spec.paths import get
from rldsl.store.errors import StoreError
from rldsl.store.integrity import metrics_damage
from rldsl.store.layout import METRICS
from rldsl.store.session_dir import SessionDir


@dataclass(frozen=True)
class Candidate:
    """A configuration that is validated."""

    number: int | None
    """Its trial in the search; None: the current settings of the experiment."""
    row: Row

    @property
    def name(self) -> str:
        return "current settings" if self.number is None else f"trial {self.number}"


@dataclass(frozen=True)
class ValidatedTrial:
    """A candidate with its scores, compared with the current settings."""

    candidate: Candidate
    scores: tuple[float, ...]
    """The score of each finished session: `episode_return_ma` at its end."""
    difference: float
    """Mean score minus that of the current settings; nan if one is not known."""
    interval: Interval
    """95% interval of the difference."""
    probability: float
    """The probability that a run of this configuration is better than one with the current settings."""

    @property
    def complete(self) -> bool:
        """Whether every seed has a score."""
        return len(self.scores) == len(self.candidate.row.seeds) and not any(map(math.isnan, self.scores))

    @property
    def score(self) -> float:
        return fmean(self.scores) if self.scores else math.nan

    def data(self) -> dict[str, Any]:
        """The result as JSON; numbers that are not known are None."""
        interval = None if math.isnan(self.interval.low) else list(self.interval)
        return {
            "trial": self.candidate.number,
            "id": self.candidate.row.id,
            "settings": self.candidate.row.differs,
            "seeds": list(self.candidate.row.seeds),
            "scores": [_known(score) for score in self.scores],
            "score": _known(self.score),
            "difference": _known(self.difference),
            "interval_95": interval,
            "probability_of_improvement": _known(self.probability),
        }


def candidates(experiment: Experiment, best: Sequence[RankedTrial], overrides: Overridden) -> list[Candidate]:
    """The current settings of an experiment, then the best trials of its search that differ from them."""
    assert experiment.search is not None
    base = experiment.base()
    paths = [path for path in experiment.search.paths() if _has(base, path)]
    current = _row(overrides, base, {path: _plain(get(base, path)) for path in paths})
    made = [Candidate(None, current)]
    seen = {base.id}
    for ranked in best:
        trial = trial_of(experiment, dict(ranked.point))
        if trial.id not in seen:
            seen.add(trial.id)
            made.append(Candidate(ranked.number, _row(overrides, trial, dict(ranked.point))))
    return made


def validation_plan(one: Overridden, validated: Sequence[Candidate]) -> Plan:
    """A plan that trains the candidates on the experiment's own seeds."""
    experiment = one.experiment
    part = Part(
        name=_name(experiment),
        trials=len(validated),
        seeds=len(experiment.seeds),
        frames=experiment.budget.frames,
        search=None,
        adaptive=False,
        target=experiment.target,
        overrides=one.overrides,
        work=work(experiment.base()),
        launcher=experiment.launcher,
    )
    return Plan((part,), lambda: (candidate.row for candidate in validated))


def validation_results(validated: Sequence[Candidate], existing: Existing, maximize: bool) -> list[ValidatedTrial]:
    """The finished sessions of the candidates; the current settings first, then the others, best first."""
    scores = {one.row.id: _scores(one, existing) for one in validated}
    current = next(scores[one.row.id] for one in validated if one.number is None)
    results = [_compare(one, scores[one.row.id], current, maximize) for one in validated]
    return sorted(results, key=lambda result: (result.candidate.number is not None, _order(result, maximize)))


def winner(results: Sequence[ValidatedTrial], maximize: bool) -> ValidatedTrial | None:
    """The complete result with the best score; None if none is complete. Of equal ones, the current settings."""
    complete = [result for result in results if result.complete]
    return min(complete, key=lambda result: _order(result, maximize), default=None)


def _order(result: ValidatedTrial, maximize: bool) -> float:
    return math.inf if math.isnan(result.score) else -result.score if maximize else result.score


def _compare(one: Candidate, scores: Sequence[float], current: Sequence[float], maximize: bool) -> ValidatedTrial:
    if one.number is None or not scores or not current:
        return ValidatedTrial(one, tuple(scores), math.nan, UNKNOWN, math.nan)
    worse, better = (current, scores) if maximize else (scores, current)
    return ValidatedTrial(
        one,
        tuple(scores),
        fmean(scores) - fmean(current),
        difference_interval(current, scores),
        probability_of_improvement(worse, better),
    )


def _scores(one: Candidate, existing: Existing) -> list[float]:
    done = [planned for planned in existing.planned(one.row) if planned.state == "done"]
    for planned in done:
        if damage := metrics_damage(existing.runs / planned.directory / METRICS, planned.on_disk):
            raise StoreError(f"{planned.id}: {damage}; remove its directory to train it again")
    return [session_value(SessionDir(existing.runs / planned.directory).metrics, None).value for planned in done]


def _row(one: Overridden, trial: Trial, differs: dict[str, Any]) -> Row:
    experiment = one.experiment
    return Row(
        _name(experiment), trial, trial.id, tuple(experiment.seeds), differs, experiment.target, tuple(one.overrides)
    )


def _name(experiment: Experiment) -> str:
    return f"{experiment.name}-validation"


def _has(trial: Trial, path: str) -> bool:
    try:
        get(trial, path)
    except (AttributeError, KeyError, TypeError):  # an axis of another agent
        return False
    return True


def _plain(setting: Any) -> Any:
    return setting.data() if hasattr(setting, "data") else setting


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
