"""The later stages of a staged search."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Gt, Le
from pydantic import Field

from rldsl.spec.base import Count, Natural, Real, Spec
from rldsl.spec.budget import MOST_SEEDS
from rldsl.spec.methods import MOST_TRIALS


class Narrow(Spec, frozen=True):
    """A second search, without early stopping, on ranges around the best trials of the first."""

    trials: Annotated[Count, Le(MOST_TRIALS)] = Field(kw_only=False, default=8, description="Number of sampled trials")
    seeds: Annotated[Count, Le(MOST_SEEDS)] = Field(
        default=4, description="Seeds of each trial; none of them is a seed of the first stage"
    )
    best: Count = Field(default=3, description="Trials of the first stage that the ranges are drawn around")
    margin: Annotated[Real, Gt(0), Le(1)] = Field(
        default=0.1, description="What is added to both ends of the range of the best, as a share of the original range"
    )
    sampler: Literal["random", "sobol"] = Field(default="sobol", description="How trials are sampled")
    seed: Natural = Field(default=0, description="Seed of the sampler")
