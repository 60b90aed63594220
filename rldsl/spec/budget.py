"""How long, how often and how it is judged: budget, seeds, target, evaluation."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from rldsl.spec.base import Count, Flag, Natural, NoHash, Real, Spec, Unique

SEARCH_SEEDS_FROM = 1_000_000
"""Benchmark seeds are below, search seeds from here on: no setting is chosen by the seeds that it is scored on."""

MOST_SEEDS = SEARCH_SEEDS_FROM


class Budget(Spec, frozen=True):
    """How long a session trains, and how often it says how it is doing."""

    frames: Count = Field(kw_only=False, description="Agent steps, summed over the session's environments")
    log_every: Count | None = Field(default=None, description="Frames between log points; none: frames / 400")
    checkpoint_every: Annotated[Count | None, NoHash] = Field(
        default=None, description="Frames between checkpoints; none: about every two minutes"
    )

    @property
    def log_interval(self) -> int:
        """Frames between two log points."""
        return self.log_every or max(1, self.frames // 400)


class Seeds(Spec, frozen=True):
    """The seeds `first`, `first + 1`, ..., or exactly those in `values`: each makes a session of every trial."""

    count: Count = Field(kw_only=False, default=1, description="How many")
    first: Natural = Field(default=0, description="The first of them")
    values: Annotated[tuple[Natural, ...], Unique] = Field(
        default=(), exclude_if=operator.not_, description="Exactly these, instead of `count` and `first`"
    )

    def __iter__(self) -> Iterator[int]:  # type: ignore[override]
        return iter(self.values or range(self.first, self.first + self.count))

    def __len__(self) -> int:
        return len(self.values) or self.count


class Target(Spec, frozen=True):
    """The score to reach; shown beside the curve, no part of the work."""

    score: Real = Field(kw_only=False, description="Return, as the moving average over log points")


class Evaluation(Spec, frozen=True):
    """Episodes without learning, in environments of their own. Their results are written at log points."""

    every: Count = Field(kw_only=False, description="Frames between two evaluations")
    episodes: Count = Field(default=10, description="Episodes of each")
    deterministic: Flag = Field(default=True, description="Take the likeliest action instead of a sample")

    def problem(self, budget: Budget) -> str | None:
        """What does not fit: results between two log points would never be written."""
        if self.every >= budget.log_interval:
            return None
        source = "log_every" if budget.log_every else "frames / 400"
        return (
            f"evaluation.every = {self.every:,} is finer than the log interval of {budget.log_interval:,} frames "
            f"({source}), at which its results are written: evaluate less often or log more often"
        )
