"""Compares results A with results B, trial by trial: the difference of their scores, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from rldsl.maths.statistics import (
    CONFIDENCE,
    Interval,
    difference_interval,
    improvement_interval,
    interval_of_mean,
    probability_of_improvement,
)
from rldsl.report.panel import Line, Panel
from rldsl.report.result import Result
from rldsl.report.words import amount, count
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError

Verdict = Literal["better", "worse", "unclear"]
MOST_TRIALS = 4
"""Trials that a message names."""
LEAST_SEEDS = 3
"""Seeds that an interval needs."""


@dataclass(frozen=True)
class Comparison:
    """One trial of A and one of B in the same environment."""

    a: Result
    b: Result
    of: int = 1
    """How many comparisons are made together."""

    @property
    def name(self) -> str:
        names = dict.fromkeys((self.a.experiment, self.b.experiment))
        return " and ".join(names)

    @property
    def difference(self) -> float:
        """mean(B) - mean(A)."""
        return self.b.score - self.a.score

    @property
    def interval(self) -> Interval:
        """95% interval of the difference."""
        return difference_interval(self.a.scores, self.b.scores)

    @property
    def improvement(self) -> float:
        """The probability that a seed of B has a higher score than a seed of A."""
        return probability_of_improvement(self.a.scores, self.b.scores)

    @property
    def improvement_interval(self) -> Interval:
        """95% interval of the probability of improvement."""
        return improvement_interval(self.a.scores, self.b.scores)

    @property
    def verdict(self) -> Verdict:
        """Better or worse if the interval of the difference excludes 0; if neither A nor B varies, by `improvement`.

        Of k comparisons each interval has the confidence 1 - 0.05 / k (Bonferroni), so that the probability of a
        false verdict among all of them is at most 5%.
        """
        confidence = 1 - (1 - CONFIDENCE) / self.of
        interval, nothing = difference_interval(self.a.scores, self.b.scores, confidence), 0.0
        if not interval.known:
            interval, nothing = improvement_interval(self.a.scores, self.b.scores, confidence), 0.5
        if interval.high < nothing:
            return "worse"
        return "better" if interval.low > nothing else "unclear"

    @property
    def note(self) -> str:
        """What makes the scores less comparable; empty if nothing does."""
        frames = [_frames(one) for one in (self.a, self.b)]
        if None in frames or frames[0] == frames[1]:
            return ""
        return f"{self.name}: A was trained for {amount(frames[0] or 0)} frames, B for {amount(frames[1] or 0)}"

    @property
    def few_seeds(self) -> str:
        """Why there is no interval; empty if there are enough seeds."""
        few = [(len(one.sessions), side) for side, one in (("A", self.a), ("B", self.b))]
        has = " and ".join(f"{side} has {count(n, 'seed')}" for n, side in few if n < LEAST_SEEDS)
        return f"{self.name}: {has}: too few for an interval; train 4 or more" if has else ""

    def panel(self, label_a: str, label_b: str) -> Panel:
        """The learning curves of both."""
        pairs = ((label_a, self.a), (label_b, self.b))
        lines = [
            Line.joined(label, one.curve, color)
            for color, (label, one) in enumerate(pairs)
            if one.curve is not None and one.curve.frame.size
        ]
        target = self.b.target if self.a.target == self.b.target else None
        return Panel(self.name, lines, target, note="mean over seeds")

    def data(self) -> dict[str, Any]:
        """The comparison as JSON; what is not known is None."""
        return {
            "env": env_id(self.a),
            "a": _side(self.a),
            "b": _side(self.b),
            "difference": self.difference,
            "interval_95": _ends(self.interval),
            "probability_of_improvement": self.improvement,
            "probability_of_improvement_interval_95": _ends(self.improvement_interval),
            "verdict": self.verdict,
        }


class Compared(NamedTuple):
    """All comparisons, and the names of experiments that only one of both has."""

    comparisons: list[Comparison]
    only_a: list[str]
    only_b: list[str]
    refused: list[str]
    """A sentence for each pair that could not be compared."""

    @property
    def worse(self) -> list[Comparison]:
        return [one for one in self.comparisons if one.verdict == "worse"]

    def below(self, difference: float) -> list[Comparison]:
        """The comparisons with a lower difference than this."""
        return [one for one in self.comparisons if one.difference < difference]


def compare(a: Sequence[Result], b: Sequence[Result]) -> Compared:
    """Compares the finished sessions of A and B. Trials belong together if they have the same name, and if several
    have it, the same settings; if A and B have one trial each, these two."""
    first, second = [_finished(one) for one in a], [_finished(one) for one in b]
    pairs = [(first[0], second[0])] if len(first) == len(second) == 1 else _pairs(first, second)
    if not pairs:
        raise SpecError(_no_pair(first, second))
    problems = [_problem(*pair) for pair in pairs]
    comparable = [pair for pair, problem in zip(pairs, problems, strict=True) if problem is None]
    refused = [problem for problem in problems if problem is not None]
    if not comparable:
        raise StoreError(refused[0])
    return Compared(
        [Comparison(*pair, of=len(comparable)) for pair in comparable],
        _names(one for one in first if all(one is not pair[0] for pair in pairs)),
        _names(one for one in second if all(one is not pair[1] for pair in pairs)),
        refused,
    )


def env_id(result: Result) -> str:
    """The id of the environment."""
    env = result.spec.get("env") or {}
    return str(env.get("id", env.get("kind", "?")))


def _pairs(a: Sequence[Result], b: Sequence[Result]) -> list[tuple[Result, Result]]:
    pairs = []
    for one in a:
        named = [other for other in b if other.experiment == one.experiment]
        same = [other for other in named if other.trial == one.trial]
        alone = len(named) == 1 and sum(other.experiment == one.experiment for other in a) == 1
        if same or alone:
            pairs.append((one, (same or named)[0]))
    return pairs


def _no_pair(a: Sequence[Result], b: Sequence[Result]) -> str:
    """Why no trial of A belongs to one of B, and what to name instead."""
    names = [_names(side) for side in (a, b)]
    if all(len(one) == 1 for one in names):  # two experiments, but not two trials
        label, side = next((label, side) for label, side in (("A", a), ("B", b)) if len(side) > 1)
        ids = [one.trial for one in side]
        shown = ", ".join(ids[:MOST_TRIALS]) + (", ..." if len(ids) > MOST_TRIALS else "")
        several = f"{side[0].experiment} in {label} has {count(len(ids), 'trial')}"
        return f"{several}: name one of them ({shown}), or FILE:EXPERIMENT for those that a file declares now"
    has = [", ".join(one) or "nothing" for one in names]
    return f"A and B have no experiment in common: A has {has[0]}, B has {has[1]}"


def _finished(result: Result) -> Result:
    """The result without sessions that are not done."""
    return replace(result, sessions=[one for one in result.sessions if one.state == "done"])


def _problem(a: Result, b: Result) -> str | None:
    """Why two results cannot be compared; None if they can."""
    if env_id(a) != env_id(b):
        return f"{a.experiment} is of {env_id(a)} and {b.experiment} of {env_id(b)}: their scores cannot be compared"
    if a.metric != b.metric:
        return f"the score of A is {a.metric} and that of B {b.metric}: they cannot be compared"
    for name, side in (("A", a), ("B", b)):
        if not side.sessions:
            return f"no session of {side.experiment} in {name} is done"
        if without := [one.seed for one in side.sessions if one.score is None]:
            seeds = ", ".join(map(str, without))
            return f"{side.experiment} in {name} has no score: no episode ended with seed {seeds}"
    return None


def _names(results: Any) -> list[str]:
    return sorted({one.experiment for one in results})


def _frames(result: Result) -> int | None:
    frames = (result.spec.get("budget") or {}).get("frames")
    return None if frames is None else int(frames)


def _side(result: Result) -> dict[str, Any]:
    return {
        "experiment": result.experiment,
        "trial": result.trial,
        "n": len(result.sessions),
        "score": result.score,
        "interval_95": _ends(interval_of_mean(result.scores)),
        "seeds": {str(one.seed): one.score for one in result.sessions},
    }


def _ends(interval: Interval) -> list[float] | None:
    return list(interval) if interval.known else None


def summary(compared: Compared) -> str:
    """`3 comparisons: 1 worse, 2 unclear`."""
    verdicts = [one.verdict for one in compared.comparisons]
    numbers = [f"{verdicts.count(word)} {word}" for word in ("worse", "better", "unclear") if word in verdicts]
    return f"{count(len(verdicts), 'comparison')}: {', '.join(numbers)}"
