"""Experiment, trial and session: what is declared, what it expands to, and what runs."""

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
from rldsl.spec.search import Search


def name_problem(name: object) -> str | None:
    """What is wrong with the name of an experiment."""
    if isinstance(name, str) and re.fullmatch(r"[\w.-]+(/[\w.-]+)*", name):
        return None
    return "should be letters, digits and . _ - with / between its parts"


def _legible(name: str) -> str:
    if problem := name_problem(name):
        raise PydanticCustomError("name", "{problem}", {"problem": problem})
    return name


Name: TypeAlias = Annotated[str, AfterValidator(_legible)]


class Trial(Spec, frozen=True):
    """One point of an experiment: everything that the work depends on, but the seed."""

    agent: Agent = Field(description="What learns")
    env: Environment = Field(description="What it acts in")
    budget: Budget = Field(description="How long")
    evaluation: Evaluation | None = Field(default=None, description="Episodes without learning; none: no such")
    compute: Annotated[Compute, NoHash] = Field(default=Compute(), description="How it computes, no part of what it is")

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
    """What a person declares."""

    name: Annotated[Name, NoHash] = Field(description="How it is called")
    seeds: Seeds = Field(default=Seeds(), description="A session for each")
    target: Target | None = Field(default=None, description="The score to reach")
    search: Search | None = Field(default=None, description="Axes, and how trials are drawn from them")
    launcher: Annotated[Launcher, NoHash] = Field(
        default=Local(), description="Where its sessions run, no part of what they are"
    )

    @property
    def sampled(self) -> bool:
        """Whether it looks for settings, and so belongs to `search` and not to `train`."""
        return self.search is not None and self.search.method.sampled

    @property
    def session_seeds(self) -> Iterator[int]:
        """The seeds of its sessions; those of a search are apart from those of a benchmark."""
        shift = SEARCH_SEEDS_FROM if self.sampled else 0
        return (shift + seed for seed in self.seeds)

    def base(self) -> Trial:
        """The trial that it is without its search."""
        return Trial(**{name: getattr(self, name) for name in Trial.model_fields})
