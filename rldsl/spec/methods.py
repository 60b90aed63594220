"""Search methods: how the trials of a search are chosen from its axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal, Self, TypeAlias

from annotated_types import Gt, Le
from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from rldsl.spec.base import Count, Flag, Kind, Natural, whole
from rldsl.spec.budget import MOST_SEEDS
from rldsl.spec.errors import suggestion

EXAMPLES = '.random(trials=16), .sobol(trials=16), .nevergrad("NGOpt", trials=16) or .asha(trials=16)'
"""A call of every method that samples, for error messages."""
COMMON_OPTIMIZERS = frozenset(
    {"NGOpt", "OnePlusOne", "TBPSA", "CMA", "TwoPointsDE", "DE", "PSO", "PortfolioDiscreteOnePlusOne", "RandomSearch"}
)
"""Optimizers that are known without importing Nevergrad, which takes seconds; all of them take parallel trials."""
MOST_TRIALS = 1_000_000
"""Trials that a search may sample."""
GRACE = 0.1
"""The least first rung of ASHA, as a fraction of the budget, unless `grace` is given."""


class Method(Kind, frozen=True):
    """How trials are generated from the axes."""

    @property
    def sampled(self) -> bool:
        """Whether trials are sampled, at random or by score. Such sessions never enter a benchmark table."""
        return True

    @property
    def crosses_grids(self) -> bool:
        """Whether every sample is combined with every value of the grid axes; otherwise a grid is a choice."""
        return True


class Exhaustive(Method, frozen=True):
    """Every point of the grid; the first axis varies slowest."""

    kind: Literal["exhaustive"] = "exhaustive"

    @property
    def sampled(self) -> bool:
        return False


class GridSearch(Method, frozen=True):
    """Every point of the grid as a search: on search seeds, ranked by score."""

    kind: Literal["grid"] = "grid"


class Sampling(Method, frozen=True):
    """A method that samples a number of trials."""

    trials: Annotated[Count, Le(MOST_TRIALS)] = Field(kw_only=False, default=16, description="Number of sampled trials")
    seed: Natural = Field(default=0, description="Seed of the sampler")


class RandomSearch(Sampling, frozen=True):
    """Independent random samples; each is combined with every value of the grid axes."""

    kind: Literal["random"] = "random"


class Sobol(Sampling, frozen=True):
    """A scrambled Sobol sequence, which covers the axes more evenly than random samples: Owen (1998).

    Each sample is combined with every value of the grid axes.
    """

    kind: Literal["sobol"] = "sobol"


def _not_decreasing(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if list(seeds) != sorted(seeds):
        raise PydanticCustomError("seeds", "should not decrease from rung to rung")
    return seeds


SeedsPerRung: TypeAlias = Annotated[
    tuple[Annotated[Count, Le(MOST_SEEDS)], ...], Field(min_length=1), AfterValidator(_not_decreasing)
]


class Asha(Sampling, frozen=True):
    """Asynchronous successive halving: Li et al. (2020), https://arxiv.org/abs/1810.05934. Grid axes are choices.

    A trial that reaches a rung is paused there. The best 1/eta of a rung's trials are promoted to the next one.
    """

    kind: Literal["asha"] = "asha"
    grace: Count | None = Field(
        default=None, description="Frames of the first rung; None: budget / eta^k, at least 10% of the budget"
    )
    eta: Annotated[int, Strict(), Gt(1), Le(MOST_TRIALS), BeforeValidator(whole)] = Field(
        default=3, description="Reduction factor: one in eta trials is promoted at each rung"
    )
    seeds: SeedsPerRung = Field(
        default=(1,), description="Number of seeds at each rung, the same seeds for every trial; the last one repeats"
    )
    stopping: Flag = Field(
        default=False, description="Trials below the best 1/eta of a rung are stopped for good; the others go on"
    )
    sampler: Literal["random", "sobol"] = Field(default="random", description="How trials are sampled")
    min_results: Count | None = Field(
        default=None, description="Results that a rung needs before a decision; None: 2 * eta"
    )
    last: Count = Field(default=100, description="Log points whose mean is a trial's value at a rung")

    @property
    def crosses_grids(self) -> bool:
        return False

    @property
    def results_needed(self) -> int:
        """Results that a rung needs before a decision."""
        return self.min_results or 2 * self.eta

    def rungs(self, budget: int) -> tuple[int, ...]:
        """The frames of each rung: grace, grace * eta, grace * eta^2, ... below the budget, and the budget.

        Without `grace` they are budget / eta^k, the first of them the lowest that is at least 10% of the budget.
        """
        if self.grace is not None:
            return (*self._below(budget, self.grace), budget)
        most = max(1, int(math.log(1 / GRACE, self.eta) + 1e-9))
        return tuple(sorted({max(1, round(budget / self.eta**power)) for power in range(most + 1)}))

    def _below(self, budget: int, frames: int) -> Iterator[int]:
        while frames < budget:
            yield frames
            frames *= self.eta

    def problem(self, budget: int) -> str | None:
        """What does not fit the budget."""
        if self.grace is not None and self.grace >= budget:
            return f"asha.grace = {self.grace:,} should be less than the budget of {budget:,} frames"
        if len(self.seeds) > (rungs := len(self.rungs(budget))):
            return f"asha.seeds = {self.seeds} has more entries than there are rungs ({rungs})"
        return None

    def seeds_at(self, rung: int) -> int:
        """How many seeds each trial has at a rung."""
        return self.seeds[min(rung, len(self.seeds) - 1)]


class Nevergrad(Sampling, frozen=True):
    """An optimizer of the Nevergrad library chooses each trial from the results so far. Grid axes are choices."""

    kind: Literal["nevergrad"] = "nevergrad"
    optimizer: str = Field(default="NGOpt", description="Name of an optimizer in Nevergrad's registry")
    parallel: Count = Field(default=4, description="Trials that are trained at the same time")

    @property
    def crosses_grids(self) -> bool:
        return False

    @model_validator(mode="after")
    def _known_optimizer(self) -> Self:
        if self.optimizer in COMMON_OPTIMIZERS:
            return self
        from nevergrad import optimizers

        if self.optimizer not in optimizers.registry:
            hint = suggestion(self.optimizer, sorted(optimizers.registry))
            raise ValueError(f"Nevergrad has no optimizer {self.optimizer!r}; {hint}")
        if self.parallel > 1 and optimizers.registry[self.optimizer].no_parallelization:
            raise ValueError(
                f"Nevergrad's {self.optimizer} takes one trial at a time: set parallel=1, got {self.parallel}"
            )
        return self
