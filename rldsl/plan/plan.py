"""The plan: every session that the chosen experiments stand for, each validated and with its identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rldsl.plan.expand import Point, chosen_as_it_goes, count, expand
from rldsl.plan.overrides import Overridden
from rldsl.plan.work import work
from rldsl.spec.base import SCHEMA
from rldsl.spec.budget import Target
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment, Trial
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.session import Override, Session
from rldsl.store.plan_file import read_plan, save_plan


@dataclass(frozen=True, slots=True)
class Row:
    """A trial of a plan, with its seeds and what tells it from its siblings."""

    experiment: str
    trial: Trial
    id: str
    seeds: tuple[int, ...]
    differs: Point
    target: Target | None
    overrides: tuple[Override, ...]

    def sessions(self) -> Iterator[Session]:
        """A session for each seed."""
        for seed in self.seeds:
            yield Session(
                experiment=self.experiment, trial=self.trial, seed=seed, target=self.target, overrides=self.overrides
            )

    def directory(self, seed: int) -> str:
        """Where the session of a seed lives below the run directory."""
        trial = self.trial
        return f"{trial.env.slug}/{trial.agent.kind}-{self.id}/seed-{seed}"

    def data(self) -> dict[str, Any]:
        """The row in a plan file."""
        return {
            "experiment": self.experiment,
            "id": self.id,
            "differs": self.differs,
            "seeds": list(self.seeds),
            "spec": self.trial.data(),
        }


@dataclass(frozen=True)
class Part:
    """What the plan says about one experiment as a whole."""

    name: str
    trials: int
    seeds: int
    frames: int
    search: str | None
    adaptive: bool
    target: Target | None
    overrides: tuple[Override, ...]
    work: str | None
    """What a session means in numbers that its spec does not show."""
    launcher: Launcher = field(default_factory=Local)

    @property
    def sessions(self) -> int:
        return self.trials * self.seeds

    def data(self) -> dict[str, Any]:
        """The experiment in a plan file."""
        return {
            "name": self.name,
            "trials": self.trials,
            "seeds": self.seeds,
            "frames": self.frames,
            "search": self.search,
            "adaptive": self.adaptive,
            "target": self.target.data() if self.target else None,
            "overrides": [override.data() for override in self.overrides],
            "work": self.work,
            "launcher": self.launcher.data(),
        }


@dataclass(frozen=True)
class Plan:
    """Experiments and, made anew each time they are walked, the rows of their trials."""

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
        """Where all of it runs."""
        for one in self.parts[1:]:
            if one.launcher != self.parts[0].launcher:
                differ = f"{self.parts[0].name} and {one.name} run in different places"
                raise SpecError(f"{differ}: choose one place with --on, or one of them with --only")
        return self.parts[0].launcher if self.parts else Local()

    def on(self, launcher: Launcher) -> Plan:
        """The same plan in another place."""
        return replace(self, parts=tuple(replace(part, launcher=launcher) for part in self.parts))

    def header(self) -> dict[str, Any]:
        """All but the trials."""
        return {"schema": SCHEMA, "experiments": [part.data() for part in self.parts]}

    def save(self, path: Path) -> None:
        """Freezes the plan into a file."""
        save_plan(path, self.header(), (row.data() for row in self.rows()))


def make_plan(experiments: Sequence[Overridden]) -> Plan:
    """The plan of experiments after their overrides."""
    _refuse_same_names([one.experiment for one in experiments])
    return Plan(tuple(_part(one) for one in experiments), lambda: _rows(experiments))


def _refuse_same_names(experiments: Iterable[Experiment]) -> None:
    seen: set[str] = set()
    for experiment in experiments:
        if experiment.name in seen:
            raise SpecError(f"two experiments are called {experiment.name}; give one another name with .named(...)")
        seen.add(experiment.name)


def _part(one: Overridden) -> Part:
    experiment = one.experiment
    return Part(
        name=experiment.name,
        trials=count(experiment),
        seeds=len(experiment.seeds),
        frames=experiment.budget.frames,
        search=experiment.search.method.kind if experiment.search else None,
        adaptive=chosen_as_it_goes(experiment),
        target=experiment.target,
        overrides=one.overrides,
        work=work(experiment.base()),
        launcher=experiment.launcher,
    )


def _rows(experiments: Sequence[Overridden]) -> Iterator[Row]:
    for one in experiments:
        experiment, seeds = one.experiment, tuple(one.experiment.session_seeds)
        for planned in expand(experiment):
            trial = planned.trial
            yield Row(experiment.name, trial, trial.id, seeds, planned.differs, experiment.target, one.overrides)


def load_plan(path: Path) -> Plan:
    """The plan in a file, exactly: nothing is looked up in the experiment file again."""
    header, _ = read_plan(path)
    if header.get("schema") != SCHEMA:
        raise SpecError(f"the plan {path} has schema {header.get('schema')}, this version has {SCHEMA}: make it anew")
    parts = tuple(_loaded_part(data) for data in header["experiments"])
    by_name = {part.name: part for part in parts}
    return Plan(parts, lambda: (_loaded_row(path, data, by_name) for data in read_plan(path)[1]))


def _loaded_part(data: dict[str, Any]) -> Part:
    target = Target.parse(data["target"]) if data["target"] else None
    overrides = tuple(Override.parse(one) for one in data["overrides"])
    launcher = Launcher.parse(data.get("launcher") or "local")
    return Part(**{**data, "target": target, "overrides": overrides, "launcher": launcher})


def _loaded_row(path: Path, data: dict[str, Any], parts: dict[str, Part]) -> Row:
    trial = Trial.parse(data["spec"], root=f"{path}, trial {data['id']}")
    if trial.id != data["id"]:
        raise SpecError(f"{path}: trial {data['id']} was changed by hand, it is {trial.id} now")
    part = parts[data["experiment"]]
    return Row(part.name, trial, trial.id, tuple(data["seeds"]), data["differs"], part.target, part.overrides)
