"""The rows of a benchmark table: each entry with its result, if the audit accepts it, and its status."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

import numpy as np

from rldsl.maths import scores
from rldsl.maths.statistics import Interval, interval_of_mean
from rldsl.report.audit import audit
from rldsl.report.entry import Entry
from rldsl.report.learning_curve import join
from rldsl.report.references import DATA, Reference, algorithm_name, closest_reference
from rldsl.report.result import Result
from rldsl.spec.environment import Environment

Status = Literal["solved", "close", "below", "missing", "no target"]
STATUSES: tuple[Status, ...] = ("solved", "close", "below", "no target", "missing")
FAMILIES = ("classic", "box2d", "mujoco", "atari", "playground")
CLOSE = 0.8
"""The part of the way from the random score to the target from which on a score is close."""
RANDOM_SCORES = DATA / "random_scores.csv"


@dataclass(frozen=True)
class BenchmarkRow:
    """An entry and its result."""

    entry: Entry
    result: Result | None
    """None if there is none, or if the audit rejected it."""
    rejections: Sequence[str] = ()
    random: float | None = None
    """The score of a random policy in the same environment."""

    @property
    def algorithm(self) -> str:
        return algorithm_name(self.entry.trial.agent)

    @property
    def score(self) -> float | None:
        """The mean of the scores of the seeds in training."""
        return None if self.result is None else self.result.score

    @cached_property
    def interval(self) -> Interval | None:
        """The 95% interval of the score; None for too few seeds."""
        interval = None if self.result is None else interval_of_mean(self.result.scores)
        return None if interval is None or math.isnan(interval.low) else interval

    @property
    def evaluation(self) -> float | None:
        """The mean over seeds of the last evaluation."""
        known = self.result and self.result.evaluation_scores
        return float(np.mean(known)) if known else None

    @property
    def status(self) -> Status:
        """Solved, close, below or missing, by rule."""
        if self.score is None:
            return "missing"
        if self.entry.target is None:
            return "no target"
        if self.score >= self.entry.target:
            return "solved"
        return "close" if self.progress is not None and self.progress >= CLOSE else "below"

    @property
    def progress(self) -> float | None:
        """The part of the way from the random score to the target; None unless both are known."""
        target = self.entry.target
        if self.score is None or target is None or self.random is None or target <= self.random:
            return None
        return (self.score - self.random) / (target - self.random)

    @cached_property
    def reference(self) -> Reference | None:
        """The published score with the closest protocol."""
        return closest_reference(self.entry.trial.env.id, self.entry.trial.agent, self.entry.frames)

    def metrics(self) -> dict[str, float | None]:
        """Metrics of the learning curves (see `maths/scores.py`), as means over seeds; None if they are not known."""
        names = ("strength", "max_strength", "final_strength", "sample_efficiency", "stability", "consistency")
        curves = [one.curve for one in self.result.sessions if one.curve is not None] if self.result else []
        if self.random is None or not curves:
            return dict.fromkeys(names)
        strengths = [scores.local_strengths(curve.value, self.random) for curve in curves]
        efficiencies = [
            scores.sample_efficiency(one, curve.frame) for one, curve in zip(strengths, curves, strict=True)
        ]
        values: list[list[float]] = [
            [scores.strength(one) for one in strengths],
            [scores.max_strength(one) for one in strengths],
            [scores.final_strength(one) for one in strengths],
            efficiencies,
            [scores.stability(one) for one in strengths],
            [scores.consistency(list(join(curves).seeds - self.random))],
        ]
        return {name: finite(float(np.mean(value))) for name, value in zip(names, values, strict=True)}


@dataclass(frozen=True)
class Benchmark:
    """All rows, in the order of their entries, and results that belong to no entry."""

    rows: Sequence[BenchmarkRow]
    unknown: Sequence[Result] = field(default=())

    @property
    def families(self) -> list[str]:
        """From the smallest tasks to the largest, then those of users."""
        found = {row.entry.family for row in self.rows}
        return [*(one for one in FAMILIES if one in found), *sorted(found - set(FAMILIES))]

    def of(self, family: str) -> list[BenchmarkRow]:
        """The rows of a family."""
        return [row for row in self.rows if row.entry.family == family]

    @property
    def rejected(self) -> list[BenchmarkRow]:
        return [row for row in self.rows if row.rejections]


def make_benchmark(entries: Iterable[Entry], results: Iterable[Result]) -> Benchmark:
    """Audits each result against its entry, which has the same name, and for a point of a grid the same settings."""
    entries, results = list(entries), list(results)
    found = {_key(entry): _result_of(entry, results) for entry in entries}
    verdicts = {key: audit(result, entry) for entry in entries if (result := found[key := _key(entry)]) is not None}
    accepted = {key: result for key, result in found.items() if result is not None and not verdicts[key]}
    baselines = {
        _task(entry.trial.env): accepted[_key(entry)].score
        for entry in entries
        if entry.trial.agent.kind == "random" and _key(entry) in accepted
    }
    rows = [
        BenchmarkRow(
            entry,
            accepted.get(_key(entry)),
            verdicts.get(_key(entry), ()),
            baselines.get(_task(entry.trial.env), random_score(entry.trial.env)),
        )
        for entry in entries
    ]
    names = {entry.experiment for entry in entries}
    return Benchmark(rows, [one for one in results if one.experiment not in names])


def _key(entry: Entry) -> tuple[str, str]:
    return entry.experiment, entry.trial.id


def _result_of(entry: Entry, results: Sequence[Result]) -> Result | None:
    """The result with the settings of the entry; else, unless it is a point of a grid, one with its name."""
    named = [one for one in results if one.experiment == entry.experiment]
    same = [one for one in named if one.trial == entry.trial.id]
    return next(iter(same or ([] if entry.differs else named)), None)


def _task(env: Environment) -> str:
    """What a random score depends on: all settings of an environment but the number of copies."""
    return str({name: setting for name, setting in env.data().items() if name != "num_envs"})


def random_score(env: Environment) -> float | None:
    """The score of a random policy that comes with the package, of environments with default settings."""
    score = _random_scores().get(env.id)
    if score is None or _task(env) != _task(type(env).parse({"kind": env.kind, "id": env.id})):
        return None
    return score


@cache
def _random_scores() -> Mapping[str, float]:
    with RANDOM_SCORES.open(newline="") as file:
        return {row["env"]: float(row["score"]) for row in csv.DictReader(file)}


def finite(number: float | None) -> float | None:
    """A number for JSON, which has no nan."""
    return None if number is None or not math.isfinite(number) else number
