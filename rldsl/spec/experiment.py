"""Experiments, as users declare them, and the trials that they expand to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from rldsl.spec.agent import Agent
from rldsl.spec.base import NoHash, Spec, digest
from rldsl.spec.budget import SEARCH_SEEDS_FROM, Budget, Evaluation, Seeds, Target
from rldsl.spec.compute import Compute
from rldsl.spec.environment import Environment
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.search import Asha, Search


def name_problem(name: object) -> str | None:
    """Why `name` is not a valid experiment name; None if it is."""
    if isinstance(name, str) and re.fullmatch(r"[\w.-]+(/[\w.-]+)*", name):
        return None
    return "should be letters, digits and . _ - with / between its parts"


def _valid_name(name: str) -> str:
    if problem := name_problem(name):
        raise PydanticCustomError("name", "{problem}", {"problem": problem})
    return name


Name: TypeAlias = Annotated[str, AfterValidator(_valid_name)]


class Trial(Spec, frozen=True):
    """One point of an experiment: a complete configuration without a seed."""

    agent: Agent = Field(description="Algorithm and hyperparameters")
    env: Environment = Field(description="Environment")
    budget: Budget = Field(description="Training budget and log interval")
    evaluation: Evaluation | None = Field(default=None, description="Evaluation episodes; None: no evaluation")
    compute: Annotated[Compute, NoHash] = Field(
        default=Compute(), description="Device, compilation and threads; not part of the identity"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = list(self.agent.problems(self.env, self.budget))
        if self.evaluation is not None and (problem := self.evaluation.problem(self.budget)):
            problems.append(problem)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def id(self) -> str:
        """Same id, same work: a hash of the complete settings and the schema version."""
        return digest(self)


class Experiment(Trial, frozen=True):
    """What a user declares: a base trial, seeds, a target, optionally a search."""

    name: Annotated[Name, NoHash] = Field(description="Name of the experiment")
    seeds: Seeds = Field(default=Seeds(), description="Seeds; each trial has one session per seed")
    target: Target | None = Field(default=None, description="Target score")
    search: Search | None = Field(default=None, description="Search axes and method; None: a single trial")
    launcher: Annotated[Launcher, NoHash] = Field(
        default=Local(), description="Where sessions run; not part of the identity"
    )

    @model_validator(mode="after")
    def _rungs_fit(self) -> Self:
        method = self.search.method if self.search else None
        if isinstance(method, Asha) and (problem := method.problem(self.budget.frames)):
            raise ValueError(problem)
        return self

    @property
    def sampled(self) -> bool:
        """Whether trials are sampled: such an experiment is run by `search`, not by `train`."""
        return self.search is not None and self.search.method.sampled

    @property
    def session_seeds(self) -> Iterator[int]:
        """The seeds of its sessions; search seeds and benchmark seeds are disjoint. ASHA says itself how many."""
        method = self.search.method if self.search else None
        seeds = Seeds(count=method.seeds[-1], first=self.seeds.first) if isinstance(method, Asha) else self.seeds
        shift = SEARCH_SEEDS_FROM if self.sampled else 0
        return (shift + seed for seed in seeds)

    def base(self) -> Trial:
        """The trial with the values declared for the axes, before a search changes them."""
        return Trial(**{name: getattr(self, name) for name in Trial.model_fields})
