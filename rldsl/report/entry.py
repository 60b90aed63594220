"""The entries of a benchmark: what each experiment declares, which its result is checked against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rldsl.plan.plan import Plan
from rldsl.report.result import Result
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Trial
from rldsl.spec.session import Override
from rldsl.store.plan_parts import Row

NOT_SETTINGS = ("compute", "launcher", "budget.checkpoint_every")
"""Overrides of these do not change what is trained."""


@dataclass(frozen=True)
class Entry:
    """One trial of an experiment."""

    experiment: str
    trial: Trial
    seeds: tuple[int, ...]
    target: float | None
    searched: bool = False
    """Whether trials of the experiment are sampled."""
    differs: Mapping[str, Any] = field(default_factory=dict)
    """The settings of this point of a grid."""
    overrides: tuple[Override, ...] = ()

    @property
    def family(self) -> str:
        """The kind of its environment: classic, mujoco, ..."""
        return self.trial.env.kind

    @property
    def env(self) -> str:
        return self.trial.env.label

    @property
    def frames(self) -> int:
        return self.trial.budget.frames

    def row(self) -> Row:
        """The trial as a row of a plan."""
        return Row(self.experiment, self.trial, self.trial.id, self.seeds, dict(self.differs), None, self.overrides)

    def refuse_overrides(self) -> None:
        """Raises `SpecError` if the command line changed settings of the experiment."""
        for one in self.overrides:
            if not one.path.startswith(NOT_SETTINGS):
                raise SpecError(f"{one.source}: a benchmark has the settings of its experiment file")


def entries_of(plan: Plan) -> Iterator[Entry]:
    """The entries of a plan."""
    sampled = {part.name: part.search not in (None, "exhaustive") for part in plan.parts}
    for row in plan.rows():
        yield Entry(
            row.experiment,
            row.trial,
            row.seeds,
            row.target.score if row.target else None,
            sampled[row.experiment],
            row.differs,
            row.overrides,
        )


def entry_of(result: Result) -> Entry:
    """An entry that declares what a result says of itself: no experiment file is known for it."""
    seeds = tuple(one.seed for one in result.sessions)
    return Entry(result.experiment, result.parsed_spec(), seeds, result.target)
