"""`experiment("hopper").env(...).agent(...).frames(4e6)`: each call gives a new, checked builder; nothing mutates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec

from rldsl.builders.axes import Zipped
from rldsl.spec.agent import Agent
from rldsl.spec.base import Spec
from rldsl.spec.budget import SEARCH_SEEDS_FROM, Budget, Evaluation, Seeds, Target
from rldsl.spec.compute import Compute
from rldsl.spec.environment import Environment
from rldsl.spec.errors import SpecError, line_of_user
from rldsl.spec.experiment import Experiment, name_problem
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.paths import assign, resolve, unknown_path
from rldsl.spec.search import (
    Asha,
    Axis,
    Dimension,
    Exhaustive,
    Grid,
    Method,
    Nevergrad,
    RandomSearch,
    Search,
)

P = ParamSpec("P")

PARTS: Mapping[str, type[Spec]] = {"agent": Agent, "env": Environment, "budget": Budget, "evaluation": Evaluation}
"""The parts of an experiment that an axis may move, or move a field of."""


def _checked(
    method: Callable[Concatenate[ExperimentBuilder, P], ExperimentBuilder],
) -> Callable[Concatenate[ExperimentBuilder, P], ExperimentBuilder]:
    """The result of a call is checked as far as it is complete; an error names the caller's line."""

    @wraps(method)
    def call(self: ExperimentBuilder, /, *args: P.args, **kwargs: P.kwargs) -> ExperimentBuilder:
        try:
            builder = method(self, *args, **kwargs)
            builder._check()
            return builder
        except SpecError as error:
            raise SpecError(error.sentence, error.where or line_of_user()) from None

    return call


@dataclass(frozen=True)
class ExperimentBuilder:
    """An experiment in the making. Its fields are what has been said so far; the methods say more."""

    base: str
    label: str | None = None
    chosen_agent: Agent | None = None
    chosen_env: Environment | None = None
    budget: Budget = field(default_factory=lambda: Budget(1))
    has_frames: bool = False
    chosen_seeds: Seeds = field(default_factory=Seeds)
    chosen_target: Target | None = None
    evaluation: Evaluation | None = None
    chosen_compute: Compute = field(default_factory=Compute)
    chosen_search: Search | None = None
    launcher: Launcher = field(default_factory=Local)
    where: str | None = None

    @_checked
    def env(self, env: Environment) -> ExperimentBuilder:
        """What the agent acts in."""
        return replace(self, chosen_env=_expect(env, Environment, ".env"))

    @_checked
    def agent(self, agent: Agent) -> ExperimentBuilder:
        """What learns."""
        return replace(self, chosen_agent=_expect(agent, Agent, ".agent"))

    @_checked
    def frames(self, frames: float) -> ExperimentBuilder:
        """How many agent steps a session trains for, summed over its environments."""
        return replace(self, budget=self._budget(frames=frames), has_frames=True)

    @_checked
    def log_every(self, frames: float) -> ExperimentBuilder:
        """Frames between two log points; a four-hundredth of the budget if never said."""
        return replace(self, budget=self._budget(log_every=frames))

    @_checked
    def checkpoint_every(self, frames: float) -> ExperimentBuilder:
        """Frames between two checkpoints; about every two minutes if never said."""
        return replace(self, budget=self._budget(checkpoint_every=frames))

    @_checked
    def seeds(self, count: int, first: int = 0) -> ExperimentBuilder:
        """How many sessions each trial has, with the seeds `first`, `first + 1`, ..."""
        seeds = Seeds(count=count, first=first)
        if seeds.first + seeds.count > SEARCH_SEEDS_FROM:
            raise SpecError(f"seeds from {SEARCH_SEEDS_FROM:,} on are for searches, got {first} and {count} of them")
        return replace(self, chosen_seeds=seeds)

    @_checked
    def target(self, score: float) -> ExperimentBuilder:
        """The score to reach, for the reader: no part of the work."""
        return replace(self, chosen_target=Target(score=score))

    @_checked
    def evaluate(self, every: float, episodes: int = 10, deterministic: bool = True) -> ExperimentBuilder:
        """Episodes without learning, on environments of their own."""
        data = {"every": every, "episodes": episodes, "deterministic": deterministic}
        return replace(self, evaluation=Evaluation.parse(data))

    @_checked
    def compute(
        self, device: str = "cpu", compile: Literal["auto", "on", "off"] = "auto", threads: int = 1
    ) -> ExperimentBuilder:
        """How sessions compute: no part of what they are."""
        return replace(self, chosen_compute=Compute(device=device, compile=compile, threads=threads))

    @_checked
    def on(self, launcher: Launcher) -> ExperimentBuilder:
        """Where sessions run unless a command says otherwise: no part of what they are."""
        return replace(self, launcher=_expect(launcher, Launcher, ".on"))

    @_checked
    def named(self, name: str) -> ExperimentBuilder:
        """What the experiment is called, instead of its base name and its agent's."""
        return replace(self, label=name)

    @_checked
    def search(self, /, *zips: Zipped | Mapping[str, Axis], **axes: Axis) -> ExperimentBuilder:
        """Makes the experiment one of many trials: a grid if every axis is one, otherwise random draws.

        An axis is named by its field (`gamma=uniform(0.9, 0.99)`), or by a path in a dictionary
        (`{"agent.net.hidden": grid((64, 64), (256, 256))}`); `env` and `agent` are fields like the others.
        """
        dimensions = tuple(self._dimensions(zips, axes))
        if not dimensions:
            raise SpecError(".search needs an axis, such as gamma=uniform(0.9, 0.99)")
        drawn = any(not isinstance(dimension.axis, Grid) for dimension in dimensions)
        method = RandomSearch() if drawn else Exhaustive()
        return replace(self, chosen_search=Search(dimensions=dimensions, method=method))

    @_checked
    def random(self, trials: int = 16, seed: int = 0) -> ExperimentBuilder:
        """Draws this many trials at random."""
        return self._drawn_by(RandomSearch(trials=trials, seed=seed))

    @_checked
    def asha(self, trials: int = 16, *, grace: float, eta: int = 3, seed: int = 0) -> ExperimentBuilder:
        """Draws trials at random; each gets `grace` frames, then one in `eta` goes on to each further rung."""
        return self._drawn_by(Asha.parse({"kind": "asha", "trials": trials, "grace": grace, "eta": eta, "seed": seed}))

    @_checked
    def nevergrad(self, trials: int = 16, optimizer: str = "NGOpt", seed: int = 0) -> ExperimentBuilder:
        """Lets an optimizer of Nevergrad choose each trial from the scores of those before it."""
        return self._drawn_by(Nevergrad(trials=trials, optimizer=optimizer, seed=seed))

    @property
    def name(self) -> str:
        """`hopper/ppo`, `hopper/ppo-search`, or what `.named` said."""
        if self.label is not None:
            return self.label
        parts = [] if self.chosen_agent is None or "agent" in self._axis_paths() else [self.chosen_agent.kind]
        if self.chosen_search is not None:
            parts.append("search" if self.chosen_search.method.sampled else "grid")
        return f"{self.base}/{'-'.join(parts)}" if parts else self.base

    @_checked
    def _based(self, base: str) -> ExperimentBuilder:
        return replace(self, base=base)

    def build(self) -> Experiment:
        """The complete experiment."""
        said = {"env": self.chosen_env, "agent": self.chosen_agent, "frames": self.has_frames or None}
        if missing := [f".{method}(...)" for method, value in said.items() if value is None]:
            calls = " and ".join(missing)
            raise SpecError(f"experiment {self.name!r} is not complete: it needs {calls}", self.where)
        return Experiment.parse(self._parts() | {"name": self.name}, root=self.name)

    def _parts(self) -> dict[str, Any]:
        return {
            "agent": self.chosen_agent,
            "env": self.chosen_env,
            "budget": self.budget,
            "evaluation": self.evaluation,
            "compute": self.chosen_compute,
            "seeds": self.chosen_seeds,
            "target": self.chosen_target,
            "search": self.chosen_search,
            "launcher": self.launcher,
        }

    def _budget(self, **changes: float) -> Budget:
        return Budget.parse(self.budget.data() | changes)

    def _drawn_by(self, method: Method) -> ExperimentBuilder:
        if self.chosen_search is None:
            raise SpecError(f".{method.kind} needs axes: call .search(...) first")
        return replace(self, chosen_search=Search(dimensions=self.chosen_search.dimensions, method=method))

    def _axis_paths(self) -> list[str]:
        return [] if self.chosen_search is None else list(self.chosen_search.paths())

    def _dimensions(
        self, zips: tuple[Zipped | Mapping[str, Axis], ...], axes: Mapping[str, Axis]
    ) -> Iterator[Dimension]:
        for zipped in zips:
            if isinstance(zipped, Zipped):
                yield self._dimension(zipped.names, zipped.axis)
            elif isinstance(zipped, Mapping):
                yield from (self._dimension((path,), axis) for path, axis in zipped.items())
            else:
                raise SpecError(f".search takes axes by name, zipped(...) or a dictionary of paths, got {zipped!r}")
        yield from (self._dimension((name,), axis) for name, axis in axes.items())

    def _dimension(self, names: tuple[str, ...], axis: Axis) -> Dimension:
        if not isinstance(axis, Axis):
            raise SpecError(f"{names[0]} should be an axis such as grid(...) or uniform(...), got {axis!r}")
        dimension = Dimension(paths=tuple(self._path(name) for name in names), axis=axis)
        for value in axis.ends():
            for path, one in dimension.assignments(value).items():
                self._check_value(path, one)
        return dimension

    def _path(self, name: str) -> str:
        path = resolve(self._parts(), name)
        if path is None:
            raise SpecError(unknown_path(name, self._parts()))
        if path.partition(".")[0] not in PARTS:
            raise SpecError(f"{path} cannot be an axis: trials differ in {', '.join(PARTS)}")
        return path

    def _check_value(self, path: str, value: Any) -> None:
        """A value of an axis against the field that it is for."""
        head, _, rest = path.partition(".")
        part = self._parts()[head]
        PARTS[head].parse(assign(part.data(), rest, value) if rest else value, root=head)

    def _check(self) -> None:
        """What is known so far must fit together; points of a grid are checked as points, not here."""
        if problem := name_problem(self.name):
            raise SpecError(f"the experiment's name {problem}, got {self.name!r}")
        if self.chosen_search is not None:
            return
        if self.evaluation is not None and (problem := self.evaluation.problem(self.budget)):
            raise SpecError(problem)
        if self.chosen_agent is None or self.chosen_env is None:
            return
        budget = self.budget if self.has_frames else None
        if problems := list(self.chosen_agent.problems(self.chosen_env, budget)):
            raise SpecError("; ".join(problems))


def experiment(name: str) -> ExperimentBuilder:
    """Starts an experiment; `name` is the base of its name."""
    return ExperimentBuilder(base="", where=line_of_user())._based(name)


def _expect(value: Any, family: type[Any], method: str) -> Any:
    if isinstance(value, type) and issubclass(value, family):
        raise SpecError(f"{method} takes an instance: write {value.__name__}(...)")
    if not isinstance(value, family):
        raise SpecError(f"{method} takes an {family.__name__.lower()} such as {_examples(family)}, got {value!r}")
    return value


def _examples(family: type[Spec]) -> str:
    return " or ".join(f"{one.__name__}(...)" for one in list(getattr(family, "kinds", {}).values())[:3])
