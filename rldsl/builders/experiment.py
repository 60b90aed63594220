"""The experiment builder: `experiment("hopper").env(...).agent(...).frames(4e6)`.

Every method returns a new, validated builder.
"""

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
"""The parts of an experiment that can be an axis, as a whole or by one of their fields."""


def _checked(
    method: Callable[Concatenate[ExperimentBuilder, P], ExperimentBuilder],
) -> Callable[Concatenate[ExperimentBuilder, P], ExperimentBuilder]:
    """Validates the returned builder as far as it is complete; errors name the user's line."""

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
    """An experiment that may still be incomplete. The fields hold the settings so far; use the methods to add more."""

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
        """Sets the environment."""
        return replace(self, chosen_env=_expect(env, Environment, ".env"))

    @_checked
    def agent(self, agent: Agent) -> ExperimentBuilder:
        """Sets the agent."""
        return replace(self, chosen_agent=_expect(agent, Agent, ".agent"))

    @_checked
    def frames(self, frames: float) -> ExperimentBuilder:
        """Sets the training budget in agent steps, summed over a session's environments."""
        return replace(self, budget=self._budget(frames=frames), has_frames=True)

    @_checked
    def log_every(self, frames: float) -> ExperimentBuilder:
        """Sets the number of frames between log points (default: 1/400 of the budget)."""
        return replace(self, budget=self._budget(log_every=frames))

    @_checked
    def checkpoint_every(self, frames: float) -> ExperimentBuilder:
        """Sets the number of frames between checkpoints (default: about every two minutes)."""
        return replace(self, budget=self._budget(checkpoint_every=frames))

    @_checked
    def seeds(self, count: int, first: int = 0) -> ExperimentBuilder:
        """Sets the seeds of each trial: `first`, `first + 1`, ..."""
        seeds = Seeds(count=count, first=first)
        if seeds.first + seeds.count > SEARCH_SEEDS_FROM:
            raise SpecError(
                f"seeds from {SEARCH_SEEDS_FROM:,} on are reserved for searches, got {first} and count {count}"
            )
        return replace(self, chosen_seeds=seeds)

    @_checked
    def target(self, score: float) -> ExperimentBuilder:
        """Sets the target score, which is shown next to results and does not affect training."""
        return replace(self, chosen_target=Target(score=score))

    @_checked
    def evaluate(self, every: float, episodes: int = 10, deterministic: bool = True) -> ExperimentBuilder:
        """Evaluates the policy every `every` frames in separate environments, without learning."""
        data = {"every": every, "episodes": episodes, "deterministic": deterministic}
        return replace(self, evaluation=Evaluation.parse(data))

    @_checked
    def compute(
        self, device: str = "cpu", compile: Literal["auto", "on", "off"] = "auto", threads: int = 1
    ) -> ExperimentBuilder:
        """Sets device, compilation and CPU threads. They are not part of a session's identity."""
        return replace(self, chosen_compute=Compute(device=device, compile=compile, threads=threads))

    @_checked
    def on(self, launcher: Launcher) -> ExperimentBuilder:
        """Sets where sessions run unless `--on` overrides it. It is not part of a session's identity."""
        return replace(self, launcher=_expect(launcher, Launcher, ".on"))

    @_checked
    def named(self, name: str) -> ExperimentBuilder:
        """Sets the complete name of the experiment; by default it is derived from the base name and the agent."""
        return replace(self, label=name)

    @_checked
    def search(self, /, *zips: Zipped | Mapping[str, Axis], **axes: Axis) -> ExperimentBuilder:
        """Adds search axes. If all of them are grids, every point is trained; otherwise points are sampled at random.

        An axis is given by its field (`gamma=uniform(0.9, 0.99)`) or by a path in a dictionary
        (`{"agent.net.hidden": grid((64, 64), (256, 256))}`). `env` and `agent` can be axes as well.
        """
        dimensions = tuple(self._dimensions(zips, axes))
        if not dimensions:
            raise SpecError(".search needs an axis, such as gamma=uniform(0.9, 0.99)")
        drawn = any(not isinstance(dimension.axis, Grid) for dimension in dimensions)
        method = RandomSearch() if drawn else Exhaustive()
        return replace(self, chosen_search=Search(dimensions=dimensions, method=method))

    @_checked
    def random(self, trials: int = 16, seed: int = 0) -> ExperimentBuilder:
        """Samples `trials` trials at random."""
        return self._sampled_by(RandomSearch(trials=trials, seed=seed))

    @_checked
    def asha(self, trials: int = 16, *, grace: float, eta: int = 3, seed: int = 0) -> ExperimentBuilder:
        """Samples trials at random; all train for `grace` frames, and one in `eta` is promoted at each rung."""
        return self._sampled_by(
            Asha.parse({"kind": "asha", "trials": trials, "grace": grace, "eta": eta, "seed": seed})
        )

    @_checked
    def nevergrad(self, trials: int = 16, optimizer: str = "NGOpt", seed: int = 0) -> ExperimentBuilder:
        """Lets a Nevergrad optimizer choose each trial based on the scores of earlier ones."""
        return self._sampled_by(Nevergrad(trials=trials, optimizer=optimizer, seed=seed))

    @property
    def name(self) -> str:
        """`hopper/ppo`, `hopper/ppo-search`, or the name set by `.named`."""
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
        """The complete experiment; raises SpecError if a required part is missing."""
        required = {"env": self.chosen_env, "agent": self.chosen_agent, "frames": self.has_frames or None}
        if missing := [f".{method}(...)" for method, value in required.items() if value is None]:
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

    def _sampled_by(self, method: Method) -> ExperimentBuilder:
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
        """Validates a value of an axis for its field."""
        head, _, rest = path.partition(".")
        part = self._parts()[head]
        PARTS[head].parse(assign(part.data(), rest, value) if rest else value, root=head)

    def _check(self) -> None:
        """Checks that the settings so far fit together. The points of a search are checked when it is expanded."""
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
    """Starts an experiment; its full name is `name` and the agent's kind, such as `hopper/ppo`."""
    return ExperimentBuilder(base="", where=line_of_user())._based(name)


def _expect(value: Any, family: type[Any], method: str) -> Any:
    if isinstance(value, type) and issubclass(value, family):
        raise SpecError(f"{method} takes an instance: write {value.__name__}(...)")
    if not isinstance(value, family):
        raise SpecError(f"{method} takes an {family.__name__.lower()} such as {_examples(family)}, got {value!r}")
    return value


def _examples(family: type[Spec]) -> str:
    return " or ".join(f"{one.__name__}(...)" for one in list(getattr(family, "kinds", {}).values())[:3])
