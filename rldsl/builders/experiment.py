"""The experiment builder: `experiment("hopper").env(...).agent(...).frames(4e6)`.

Every method returns a new, validated builder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec

from rldsl.builders.axes import Axes, When
from rldsl.builders.dimensions import make_dimensions
from rldsl.spec.agent import Agent
from rldsl.spec.base import Spec
from rldsl.spec.budget import SEARCH_SEEDS_FROM, Budget, Evaluation, Seeds, Target
from rldsl.spec.compute import Compute
from rldsl.spec.environment import Environment
from rldsl.spec.errors import SpecError, line_of_user, suggestion
from rldsl.spec.experiment import Experiment, Lines, name_problem
from rldsl.spec.hooks import hook_name
from rldsl.spec.init_from import HUB, InitFrom
from rldsl.spec.launcher import Launcher, Local
from rldsl.spec.search import (
    EXAMPLES,
    Asha,
    Axis,
    Dimension,
    Exhaustive,
    GridSearch,
    Method,
    Nevergrad,
    RandomSearch,
    Search,
    Sobol,
    Statistic,
)
from rldsl.spec.stages import Narrow

P = ParamSpec("P")


def _checked(
    method: Callable[Concatenate[ExperimentBuilder, P], ExperimentBuilder],
) -> Callable[Concatenate[ExperimentBuilder, P], ExperimentBuilder]:
    """Validates the returned builder as far as it is complete; errors name the user's line."""

    signature = inspect.signature(method)

    @wraps(method)
    def call(self: ExperimentBuilder, /, *args: P.args, **kwargs: P.kwargs) -> ExperimentBuilder:
        try:
            _check_arguments(method.__name__, signature, (self, *args), kwargs)
            builder = method(self, *args, **kwargs)
            builder._check()
            return replace(builder, last_call=line_of_user())
        except SpecError as error:
            raise SpecError(error.sentence, error.where or line_of_user()) from None

    return call


def _check_arguments(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuses arguments that a method does not take."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        valid = [parameter for parameter in signature.parameters if parameter != "self"]
        unknown = next((given for given in kwargs if given not in valid), None)
        hint = suggestion(unknown, valid) if unknown else f"valid: {', '.join(valid)}"
        raise SpecError(f".{name}: {error}; {hint}") from None


class UnknownMethod(SpecError, AttributeError):
    """A method that builders do not have."""


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
    initial: InitFrom | None = None
    log_hook: str | None = None
    end_hook: str | None = None
    dimensions: tuple[Dimension, ...] = ()
    method: Method | None = None
    search_options: Mapping[str, Any] = field(default_factory=dict)
    searched_at: str | None = None
    launcher: Launcher = field(default_factory=Local)
    predecessors: tuple[str, ...] = ()
    after_at: str | None = None
    where: str | None = None
    last_call: str | None = field(default=None, compare=False)

    def __getattr__(self, name: str) -> Any:
        """Called for names that do not exist only."""
        if name.startswith("_"):
            raise AttributeError(name)
        methods = [one for one, value in vars(ExperimentBuilder).items() if callable(value) and not one.startswith("_")]
        raise UnknownMethod(f"experiments have no .{name}; {suggestion(name, methods)}", line_of_user())

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
    def seeds(self, count: int | Sequence[int], first: int = 0) -> ExperimentBuilder:
        """Sets the seeds of each trial: `first`, `first + 1`, ...; or exactly those in a list."""
        if isinstance(count, Sequence):
            return replace(self, chosen_seeds=Seeds.parse({"values": list(count)}))
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
    def init_from(self, session: Any, checkpoint: Literal["best", "last"] | None = None) -> ExperimentBuilder:
        """Starts from the weights of another session, which becomes part of the identity.

        `session` is the id of a session in the run directory, the id of a trial (each seed then starts from the session
        of the same seed), a `Run`, or an agent on the Hugging Face Hub, `hf://OWNER/NAME`. Weights and normalisation
        statistics are taken over; optimizer, replay buffer and frame count start anew. `checkpoint` is `"last"` or
        `"best"`, which has the policy only, without critics; an agent on the Hub has only that.
        """
        source = str(getattr(session, "id", session))
        default = "best" if source.startswith(HUB) else "last"
        return replace(self, initial=InitFrom.parse({"source": source, "checkpoint": checkpoint or default}))

    @_checked
    def on_log(self, function: Callable[[Any], None]) -> ExperimentBuilder:
        """Calls a function of your own with a `LogPoint` at every log point of every session.

        It can end the session (`point.stop("...")`), keep a checkpoint or notify somebody. Its name is part of the
        identity, because it can change what is trained.
        """
        return replace(self, log_hook=hook_name(function, ".on_log"))

    @_checked
    def on_end(self, function: Callable[[Any], None]) -> ExperimentBuilder:
        """Calls a function of your own with a `SessionEnd` when a session is done or has failed."""
        return replace(self, end_hook=hook_name(function, ".on_end"))

    @_checked
    def compute(
        self, device: str = "auto", compile: Literal["auto", "on", "off"] = "auto", threads: int = 1
    ) -> ExperimentBuilder:
        """Sets device, compilation and CPU threads. They are not part of a session's identity."""
        return replace(self, chosen_compute=Compute(device=device, compile=compile, threads=threads))

    @_checked
    def on(self, launcher: Launcher) -> ExperimentBuilder:
        """Sets where sessions run unless `--on` overrides it. It is not part of a session's identity."""
        return replace(self, launcher=_expect(launcher, Launcher, ".on"))

    @_checked
    def after(self, *experiments: ExperimentBuilder | Experiment) -> ExperimentBuilder:
        """Starts sessions only when all sessions of these experiments are done.

        It is not part of a session's identity.
        """
        for one in experiments:
            if not isinstance(one, ExperimentBuilder | Experiment):
                raise SpecError(f".after takes experiments, got {one!r}")
        names = dict.fromkeys((*self.predecessors, *(one.name for one in experiments)))
        return replace(self, predecessors=tuple(names), after_at=line_of_user())

    @_checked
    def named(self, name: str) -> ExperimentBuilder:
        """Sets the complete name of the experiment; by default it is derived from the base name and the agent."""
        return replace(self, label=name)

    @_checked
    def search(self, /, *groups: Axes | When, **axes: Axis) -> ExperimentBuilder:
        """Sets search axes. If all of them are grids, every point is trained; otherwise choose a method as well.

        An axis is given by its field (`gamma=uniform(0.9, 0.99)`), by a path in a dictionary
        (`{"agent.net.hidden": grid((64, 64), (256, 256))}`), with others in `zipped(...)`, or for one choice of
        another axis in `when(...)`. `env` and `agent` can be axes as well.
        """
        dimensions = make_dimensions(self._parts(), groups, axes)
        all_grids = all(dimension.is_grid for dimension in dimensions)
        method = Exhaustive() if all_grids else None
        new = replace(self, dimensions=dimensions, method=method, search_options={}, searched_at=line_of_user())
        new._check_search()
        return new

    @_checked
    def grid(self, *, max_failures: int | None = None) -> ExperimentBuilder:
        """Searches every point of the grid, on search seeds. The search stops after `max_failures` failed trials."""
        return self._by(GridSearch(), max_failures)

    @_checked
    def random(self, trials: int = 16, seed: int = 0, *, max_failures: int | None = None) -> ExperimentBuilder:
        """Samples trials at random. The search stops after `max_failures` failed trials."""
        return self._by(RandomSearch(trials=trials, seed=seed), max_failures)

    @_checked
    def sobol(self, trials: int = 16, seed: int = 0, *, max_failures: int | None = None) -> ExperimentBuilder:
        """Samples trials from a scrambled Sobol sequence, which covers the axes evenly."""
        return self._by(Sobol(trials=trials, seed=seed), max_failures)

    @_checked
    def nevergrad(
        self,
        optimizer: str = "NGOpt",
        *,
        trials: int = 16,
        seed: int = 0,
        parallel: int = 4,
        max_failures: int | None = None,
    ) -> ExperimentBuilder:
        """Lets a Nevergrad optimizer choose each trial from the results so far, with `parallel` trials in flight."""
        method = Nevergrad(optimizer=optimizer, trials=trials, seed=seed, parallel=parallel)
        return self._by(method, max_failures)

    @_checked
    def asha(
        self,
        trials: int = 16,
        *,
        grace: float | None = None,
        eta: int = 3,
        seeds: tuple[int, ...] = (1,),
        stopping: bool = False,
        sampler: Literal["random", "sobol"] = "random",
        min_results: int | None = None,
        last: int = 100,
        seed: int = 0,
        max_failures: int | None = None,
    ) -> ExperimentBuilder:
        """Samples trials and promotes the best 1/eta of each rung, resuming them from their checkpoints.

        The first rung is at `grace` frames and each further one at `eta` times as many; by default they are at budget /
        eta^k frames, the first at 10% of the budget or somewhat more. `seeds=(1, 2, 4)` trains more seeds of a trial on
        higher rungs. A rung needs `min_results` results (2 * eta) before its best are promoted; a trial's value is the
        mean of its `last` log points. With `stopping`, trials are stopped instead of paused.
        """
        settings = {"grace": grace, "eta": eta, "seeds": seeds, "stopping": stopping, "sampler": sampler}
        settings |= {"min_results": min_results, "last": last, "trials": trials, "seed": seed}
        return self._by(Asha.parse({"kind": "asha", **settings}), max_failures)

    @_checked
    def objective(self, statistic: Statistic = "mean", *, maximize: bool = True) -> ExperimentBuilder:
        """Sets how a search ranks its trials: by the mean, median, iqm or min of the scores of a trial's seeds."""
        return self._with_options("objective", objective=statistic, maximize=maximize)

    @_checked
    def narrow(
        self,
        trials: int = 8,
        *,
        seeds: int = 4,
        best: int = 3,
        margin: float = 0.1,
        sampler: Literal["random", "sobol"] = "sobol",
        seed: int = 0,
    ) -> ExperimentBuilder:
        """Adds a second stage to a search: trials on `seeds` other seeds, without early stopping.

        Ranges reach from the lowest to the highest value of the `best` trials of the first stage, and further by
        `margin` of the original range, on the scale of the axis; choices are those of the best trials.
        """
        stage = Narrow(trials=trials, seeds=seeds, best=best, margin=margin, sampler=sampler, seed=seed)
        return self._with_options("narrow", narrow=stage)

    @_checked
    def validate(self, best: int = 3) -> ExperimentBuilder:
        """Adds a last stage to a search: the best trials and the current settings on the experiment's own seeds."""
        return self._with_options("validate", validate_best=best)

    @property
    def name(self) -> str:
        """`hopper/ppo`, `hopper/ppo-search`, or the name set by `.named`."""
        if self.label is not None:
            return self.label
        parts = [] if self.chosen_agent is None or self._values_of("agent") else [self.chosen_agent.kind]
        if self.dimensions:
            parts.append("search" if self.method is None or self.method.sampled else "grid")
        return f"{self.base}/{'-'.join(parts)}" if parts else self.base

    @_checked
    def _based(self, base: str) -> ExperimentBuilder:
        return replace(self, base=base)

    def build(self) -> Experiment:
        """The complete experiment; raises SpecError if a required part is missing."""
        parts = self._parts()
        for name in ("agent", "env"):  # a part that is an axis needs no other value
            if parts[name] is None and (values := self._values_of(name)):
                parts[name] = values[0]
        required = {"env": parts["env"], "agent": parts["agent"], "frames": self.has_frames or None}
        if missing := [f".{method}(...)" for method, value in required.items() if value is None]:
            calls = " and ".join(missing)
            raise SpecError(f"experiment {self.name!r} is not complete: it needs {calls}", self.where)
        given = parts | {"name": self.name, "search": self._search()}
        try:
            made = Experiment.parse(given, root=self.name)
        except SpecError as error:
            raise SpecError(error.sentence, self.searched_at or self.last_call) from None
        return made.declared_at(Lines(self.last_call, self.searched_at))

    def _parts(self) -> dict[str, Any]:
        return {
            "agent": self.chosen_agent,
            "env": self.chosen_env,
            "budget": self.budget,
            "evaluation": self.evaluation,
            "init_from": self.initial,
            "on_log": self.log_hook,
            "on_end": self.end_hook,
            "compute": self.chosen_compute,
            "seeds": self.chosen_seeds,
            "target": self.chosen_target,
            "launcher": self.launcher,
            "after": self.predecessors,
        }

    def _budget(self, **changes: float) -> Budget:
        return Budget.parse(self.budget.data() | changes)

    def _by(self, method: Method, max_failures: int | None) -> ExperimentBuilder:
        return replace(self, method=method)._with_options(method.kind, max_failures=max_failures)

    def _with_options(self, caller: str, **options: Any) -> ExperimentBuilder:
        if not self.dimensions:
            raise SpecError(f".{caller} needs axes: call .search(...) first")
        new = replace(self, search_options={**self.search_options, **options})
        new._check_search()
        return new

    def _check_search(self) -> None:
        """Checks that axes, method and options fit together; Nevergrad takes all axes."""
        Search(dimensions=self.dimensions, method=self.method or Nevergrad(), **self.search_options)

    def _search(self) -> Search | None:
        if not self.dimensions:
            return None
        if self.method is None:
            sampled = next(one.paths[0] for one in self.dimensions if not one.is_grid)
            sentence = f"the search over {sampled} needs a method that samples its trials: {EXAMPLES}"
            raise SpecError(sentence, self.searched_at)
        return Search(dimensions=self.dimensions, method=self.method, **self.search_options)

    def _values_of(self, path: str) -> list[Any]:
        """The values of the axis of a path; none if it is not an axis."""
        return [value for dimension in self.dimensions for value in dimension.values_of(path)]

    def _check(self) -> None:
        """Checks that the settings so far fit together. The points of a search are checked when it is expanded."""
        if problem := name_problem(self.name):
            raise SpecError(f"the experiment's name {problem}, got {self.name!r}")
        if self.has_frames and isinstance(self.method, Asha) and (problem := self.method.problem(self.budget.frames)):
            raise SpecError(problem)
        if self.dimensions:
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
