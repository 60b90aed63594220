"""The plan: every session of the chosen experiments, each validated and with its id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rldsl.plan.expand import count, expand, is_adaptive
from rldsl.plan.overrides import Overridden
from rldsl.plan.search_cost import search_cost
from rldsl.plan.work import work
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.spec.launcher import Launcher, Local
from rldsl.store.plan_file import Part, Row, plan_header, read_plan, save_plan

__all__ = ["Part", "Plan", "Row", "load_plan", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """Experiments and their trials; `rows` makes the trials anew on every call, one at a time."""

    parts: tuple[Part, ...]
    rows: Callable[[], Iterator[Row]]

    @property
    def trials(self) -> int:
        return sum(part.trials for part in self.parts)

    @property
    def sessions(self) -> int:
        return sum(part.sessions for part in self.parts)

    @property
    def launcher(self) -> Launcher:
        """The launcher that all experiments of the plan share."""
        for part in self.parts[1:]:
            if part.launcher != self.parts[0].launcher:
                differ = f"{self.parts[0].name} and {part.name} have different launchers"
                raise SpecError(f"{differ}: choose one with --on, or one experiment with --only")
        return self.parts[0].launcher if self.parts else Local()

    def on(self, launcher: Launcher) -> Plan:
        """The same plan with another launcher."""
        return replace(self, parts=tuple(replace(part, launcher=launcher) for part in self.parts))

    def header(self) -> dict[str, Any]:
        """The plan file without its trials."""
        return plan_header(self.parts)

    def save(self, path: Path) -> None:
        """Freezes the plan into a file."""
        save_plan(path, self.header(), (row.data() for row in self.rows()))


def make_plan(experiments: Sequence[Overridden]) -> Plan:
    """The plan of experiments after their overrides."""
    _refuse_same_names([one.experiment for one in experiments])
    _refuse_many_seeds([one.experiment for one in experiments])
    return Plan(tuple(_part(one) for one in experiments), lambda: _rows(experiments))


def _refuse_same_names(experiments: Iterable[Experiment]) -> None:
    seen: set[str] = set()
    for experiment in experiments:
        if experiment.name in seen:
            raise SpecError(f"two experiments are called {experiment.name}; give one another name with .named(...)")
        seen.add(experiment.name)


def _refuse_many_seeds(experiments: Iterable[Experiment]) -> None:
    """Seeds of a benchmark stay below those of a search."""
    for experiment in experiments:
        if len(experiment.seeds) > SEARCH_SEEDS_FROM:
            count = f"{len(experiment.seeds):,}"
            raise SpecError(
                f"{experiment.name}: {count} seeds are more than the {SEARCH_SEEDS_FROM:,} that are possible"
            )


def _part(one: Overridden) -> Part:
    experiment = one.experiment
    return Part(
        name=experiment.name,
        trials=count(experiment),
        seeds=len(list(experiment.session_seeds)),
        frames=experiment.budget.frames,
        search=experiment.search.method.kind if experiment.search else None,
        adaptive=is_adaptive(experiment),
        target=experiment.target,
        overrides=one.overrides,
        work=work(experiment.base()),
        launcher=experiment.launcher,
        cost=search_cost(experiment),
    )


def _rows(experiments: Sequence[Overridden]) -> Iterator[Row]:
    for one in experiments:
        experiment, seeds = one.experiment, tuple(one.experiment.session_seeds)
        for planned in expand(experiment):
            trial = planned.trial
            yield Row(experiment.name, trial, trial.id, seeds, planned.differs, experiment.target, one.overrides)


def load_plan(path: Path) -> Plan:
    """The plan in a file; the experiment file is not consulted."""
    file = read_plan(path)
    return Plan(file.parts(), file.rows)
