"""The plan: every session of the chosen experiments, each validated and with its id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rldsl.plan.differs import Differing
from rldsl.plan.expand import check_choices, count, expand, is_adaptive
from rldsl.plan.overrides import Overridden
from rldsl.plan.search_cost import search_cost
from rldsl.plan.work import work
from rldsl.spec.budget import MOST_SEEDS
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment
from rldsl.spec.launcher import Launcher, Local
from rldsl.store.plan_file import plan_header, read_plan, save_plan
from rldsl.store.plan_parts import Part, Row

MOST_SESSIONS = 1_000_000_000
"""Sessions that a plan may have; they are made one at a time."""

__all__ = ["Part", "Plan", "Row", "load_plan", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """Experiments and their trials; `rows` makes the trials anew on every call, one at a time."""

    parts: tuple[Part, ...]
    rows: Callable[[], Iterator[Row]]
    needed: Callable[[], Iterator[Row]] = lambda: iter(())
    """The trials of experiments that its experiments come after, but that it does not contain."""

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


def make_plan(experiments: Sequence[Overridden], needed: Sequence[Overridden] = ()) -> Plan:
    """The plan of experiments after their overrides; `needed` are others that they come after."""
    _refuse_same_names([one.experiment for one in experiments])
    _refuse_too_many([one.experiment for one in experiments])
    for one in experiments:
        check_choices(one.experiment)
    return Plan(tuple(_part(one) for one in experiments), lambda: _rows(experiments), lambda: _rows(needed))


def _refuse_same_names(experiments: Iterable[Experiment]) -> None:
    seen: dict[str, str | None] = {}
    for experiment in experiments:
        name, line = experiment.name, experiment.lines.declared
        if name in seen:
            lines = dict.fromkeys(one for one in (seen[name], line) if one)
            at = f" ({' and '.join(lines)})" if lines else ""
            raise SpecError(f"two experiments are called {name}{at}; give one another name with .named(...)")
        seen[name] = line


def _refuse_too_many(experiments: Iterable[Experiment]) -> None:
    """Bounds seeds and sessions before any is made. Seeds of a benchmark stay below those of a search."""
    for experiment in experiments:
        seeds = len(experiment.seeds)
        if seeds > MOST_SEEDS:
            raise SpecError(f"{experiment.name}: {seeds:,} seeds are more than the {MOST_SEEDS:,} that are possible")
        if max(experiment.seeds.values, default=experiment.seeds.first + seeds - 1) >= MOST_SEEDS:
            raise SpecError(f"{experiment.name}: seeds from {MOST_SEEDS:,} on are those of searches")
        if (sessions := count(experiment) * experiment.session_count) > MOST_SESSIONS:
            raise SpecError(f"{experiment.name}: {sessions:,} sessions are more than the {MOST_SESSIONS:,} of a plan")


def _part(one: Overridden) -> Part:
    experiment = one.experiment
    return Part(
        name=experiment.name,
        trials=count(experiment),
        seeds=experiment.session_count,
        frames=experiment.budget.frames,
        search=experiment.search.method.kind if experiment.search else None,
        adaptive=is_adaptive(experiment),
        target=experiment.target,
        overrides=one.overrides,
        work=work(experiment.base()),
        launcher=experiment.launcher,
        cost=search_cost(experiment),
        after=experiment.after,
    )


def _rows(experiments: Sequence[Overridden]) -> Iterator[Row]:
    for one in experiments:
        experiment, seeds = one.experiment, tuple(one.experiment.session_seeds)
        differing = None if experiment.search is None else Differing(experiment.search)
        for planned in expand(experiment):
            trial = planned.trial
            differs = differing.reduced(planned.differs) if differing else planned.differs
            yield Row(experiment.name, trial, trial.id, seeds, differs, experiment.target, one.overrides)


def load_plan(path: Path) -> Plan:
    """The plan in a file; the experiment file is not consulted."""
    file = read_plan(path)
    return Plan(file.parts(), file.rows)
