"""Asynchronous successive halving (ASHA): which trial trains on to the next rung. Li et al. (2020), arXiv 1810.05934.

Trials train for the frames of a rung and pause there. A failed trial counts as a result of the rung that it failed on,
worse than all others: it is never promoted, but it is one of the n results of which floor(n / eta) are.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from rldsl.search.history import History, TrialHistory
from rldsl.search.objective import Objective


@dataclass(frozen=True)
class Asha:
    """The rule by which trials are promoted from each of `rungs` - 1 rungs to the next."""

    rungs: int
    eta: int = 3
    min_results: int = 6
    """Results that a rung needs before a decision."""
    objective: Objective = field(default_factory=Objective)

    def promotion(self, history: History, min_results: int | None = None) -> TrialHistory | None:
        """Algorithm 2: from the top rung down, a trial of the best floor(n / eta) that was not promoted yet."""
        needed = self.min_results if min_results is None else min_results
        for rung in reversed(range(self.rungs - 1)):
            results = [trial for trial in history.trials if _has_result(trial, rung)]
            if len(results) < needed:
                continue
            best = sorted(results, key=lambda trial: self._rank(trial, rung))[: len(results) // self.eta]
            if promotable := next((trial for trial in best if _waits(trial, rung)), None):
                return promotable
        return None

    def last_promotion(self, history: History) -> TrialHistory | None:
        """A promotion once nothing runs and every trial was suggested: of the results that there are.

        If no trial has reached the top rung by then, the best of the highest rung goes on, so that a search of few
        trials ends with one that has trained for the whole budget.
        """
        if by_rule := self.promotion(history, min_results=0):
            return by_rule
        if any(self.rungs - 1 in trial.values for trial in history.trials):
            return None
        paused = [trial for trial in history.trials if trial.failed is None and trial.reached is not None]
        top = max((trial.reached or 0 for trial in paused), default=0)
        highest = [trial for trial in paused if trial.reached == top]
        return min(highest, key=lambda trial: self._rank(trial, top), default=None)

    def continuation(self, history: History) -> TrialHistory | None:
        """The stopping variant: the first trial that goes on after its last rung, judged when it arrived there."""
        return next((trial for trial in self._continuing(history) if trial.started == trial.reached), None)

    def _continuing(self, history: History) -> Iterator[TrialHistory]:
        """Trials that went on from a rung: one of the best floor(n / eta) so far, or one of the first results."""
        ranks: dict[int, list[tuple[float, int]]] = {}
        for number, rung in history.arrivals:
            trial, results = history.trials[number], ranks.setdefault(rung, [])
            rank = self._rank(trial, rung)
            insort(results, rank)
            first = len(results) < self.min_results or results.index(rank) < len(results) // self.eta
            if first and trial.reached == rung and trial.failed is None and rung < self.rungs - 1:
                yield trial

    def _rank(self, trial: TrialHistory, rung: int) -> tuple[float, int]:
        """Sorts the best first; ties by trial number. A trial without a value at the rung failed on it."""
        values = trial.values.get(rung)
        return (float("inf") if values is None else -self.objective.score(values.values()), trial.number)


def _has_result(trial: TrialHistory, rung: int) -> bool:
    return rung in trial.values or (trial.failed is not None and trial.started == rung)


def _waits(trial: TrialHistory, rung: int) -> bool:
    """Whether it is paused at the rung, not promoted yet."""
    return trial.failed is None and trial.started == rung and trial.reached == rung
