"""Experiments, as users declare them, and the trials that they expand to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from rldsl.spec.agent import Agent
from rldsl.spec.base import NoHash, Spec, digest
from rldsl.spec.budget import SEARCH_SEEDS_FROM, Budget, Evaluation, Seeds, Target
from rldsl.spec.compute import Compute
from rldsl.spec.environment import Environment
from rldsl.spec.hooks import HookName
from rldsl.spec.init_from import InitFrom
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.search import Asha, Search

LONGEST_NAME = 120
"""Bytes of an experiment's name, which becomes the name of a file or directory."""


def name_problem(name: object) -> str | None:
    """Why `name` is not a valid experiment name; None if it is."""
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", name):
        return "should be letters, digits and . _ - with / between its parts"
    if any(not part.strip(".") for part in name.split("/")):
        return "should not have parts that are . or .."
    if len(name.encode()) > LONGEST_NAME:
        return f"should have at most {LONGEST_NAME} characters"
    return None


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
    init_from: InitFrom | None = Field(
        default=None,
        exclude_if=lambda init: init is None,
        description="Another session whose weights to start from; None: random weights",
    )
    on_log: HookName | None = Field(
        default=None,
        exclude_if=lambda name: name is None,
        description="`module:function` called at log points; it can end the session, so it is part of the identity",
    )
    on_end: Annotated[HookName | None, NoHash] = Field(
        default=None,
        exclude_if=lambda name: name is None,
        description="`module:function` called when a session is done or has failed; not part of the identity",
    )
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


@dataclass(frozen=True)
class Lines:
    """`file:line` of the call that completed an experiment and of its `.search(...)`, for error messages.

    They are no part of its value: all lines are equal.
    """

    declared: str | None = field(default=None, compare=False)
    searched: str | None = field(default=None, compare=False)


class Experiment(Trial, frozen=True):
    """What a user declares: a base trial, seeds, a target, optionally a search."""

    _lines: Lines = PrivateAttr(default=Lines())

    name: Annotated[Name, NoHash] = Field(description="Name of the experiment")
    seeds: Seeds = Field(default=Seeds(), description="Seeds; each trial has one session per seed")
    target: Target | None = Field(default=None, description="Target score")
    search: Search | None = Field(default=None, description="Search axes and method; None: a single trial")
    launcher: Annotated[Launcher, NoHash] = Field(
        default=Local(), description="Where sessions run; not part of the identity"
    )
    after: Annotated[tuple[Name, ...], NoHash] = Field(
        default=(),
        exclude_if=lambda names: not names,
        description="Experiments whose sessions must be done before those of this one start; not part of the identity",
    )

    @model_validator(mode="after")
    def _rungs_fit(self) -> Self:
        method = self.search.method if self.search else None
        if isinstance(method, Asha) and (problem := method.problem(self.budget.frames)):
            raise ValueError(problem)
        return self

    @property
    def lines(self) -> Lines:
        """Where the experiment was declared, if a builder has made it."""
        return self._lines

    def declared_at(self, lines: Lines) -> Self:
        """A copy that knows where it was declared."""
        copy = self.model_copy()
        copy._lines = lines  # type: ignore[misc]  # private attributes of a frozen model can be set
        return copy

    @property
    def sampled(self) -> bool:
        """Whether trials are sampled: such an experiment is run by `search`, not by `train`."""
        return self.search is not None and self.search.method.sampled

    @property
    def session_seeds(self) -> Iterator[int]:
        """The seeds of its sessions; search seeds and benchmark seeds are disjoint. ASHA says itself how many."""
        shift = SEARCH_SEEDS_FROM if self.sampled else 0
        if self.seeds.values:
            return (shift + seed for seed in self.seeds.values[: self.session_count])
        return iter(range(self.seeds.first + shift, self.seeds.first + shift + self.session_count))

    @property
    def session_count(self) -> int:
        """How many sessions each trial has."""
        method = self.search.method if self.search else None
        return method.seeds[-1] if isinstance(method, Asha) else len(self.seeds)

    def base(self) -> Trial:
        """The trial with the values declared for the axes, before a search changes them."""
        return Trial(**{name: getattr(self, name) for name in Trial.model_fields})
