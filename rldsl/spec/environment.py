"""Environments: one model per family."""

from __future__ import annotations

import operator
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from annotated_types import MaxLen, MinLen
from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from rldsl.spec import mujoco_options
from rldsl.spec.base import Below1, Count, Flag, Kind, Natural, Spec, unique
from rldsl.spec.catalog import CONTINUOUS, AtariId, Box2DId, ClassicId, MuJoCoId, PlaygroundId, RobotId
from rldsl.spec.declared import absent_module, declare, undeclared_module
from rldsl.spec.text import matching

ActionKind = Literal["discrete", "continuous"]
MetricName = Annotated[str, matching(r"[A-Za-z][\w./-]*", "a letter, then letters, digits and _ . / -")]
"""A key of `info` that can be a column of metrics.csv."""


class Environment(Kind, frozen=True):
    """`num_envs` copies of an environment, stepped as one batch."""

    id: str
    num_envs: Count = Field(default=1, description="Number of parallel environments per session")

    @property
    def actions(self) -> ActionKind | None:
        """The kind of the action space; None if it is unknown before the environment is made."""
        return None

    def missing(self) -> str | None:
        """What must be installed to run it here, and how; None if nothing is missing. Imports no environment."""
        return None

    @property
    def label(self) -> str:
        """The name shown in tables."""
        return self.id

    @property
    def slug(self) -> str:
        """The label as a directory name."""
        return re.sub(r"[^a-z0-9.-]+", "-", self.label.lower()).strip("-.") or self.kind


class Classic(Environment, frozen=True):
    """Gymnasium's classic control environments, vectorized with numpy."""

    kind: Literal["classic"] = "classic"
    implementation: ClassVar[str] = "rldsl.envs.make:classic"
    id: ClassicId = Field(kw_only=False, description="Gymnasium id")

    @property
    def actions(self) -> ActionKind:
        return "continuous" if self.id in CONTINUOUS else "discrete"


class Box2D(Environment, frozen=True):
    """Box2D environments of Gymnasium or EnvPool. Their dynamics differ, so the backend is part of the identity."""

    kind: Literal["box2d"] = "box2d"
    implementation: ClassVar[str] = "rldsl.envs.make:box2d"
    id: Box2DId = Field(kw_only=False, description="Gymnasium id")
    backend: Literal["gymnasium", "envpool"] = Field(
        default="gymnasium", description="Implementation; envpool is faster and needs the extra `envpool`"
    )
    max_episode_steps: Count | None = Field(default=None, description="Time limit; None: the registered one")

    @property
    def actions(self) -> ActionKind:
        return "continuous" if self.id in CONTINUOUS else "discrete"

    def missing(self) -> str | None:
        if self.backend == "envpool" and find_spec("envpool") is None:
            return "EnvPool is not installed; install it with pip install 'rldsl[envpool]'"
        return None


class MuJoCo(Environment, frozen=True):
    """Gymnasium's MuJoCo tasks."""

    kind: Literal["mujoco"] = "mujoco"
    implementation: ClassVar[str] = "rldsl.envs.make:mujoco"
    id: MuJoCoId = Field(kw_only=False, description="Gymnasium id")
    options: dict[str, JsonValue] = Field(
        default={}, description="Keyword arguments of the Gymnasium environment; None in a range means no limit"
    )

    @field_validator("options", mode="before")
    @classmethod
    def _check_options(cls, options: Any, info: ValidationInfo) -> Any:
        if not isinstance(options, dict) or "id" not in info.data:  # Pydantic reports these errors itself
            return options
        return mujoco_options.checked(info.data["id"], options)

    @property
    def actions(self) -> ActionKind:
        return "continuous"


class Atari(Environment, frozen=True):
    """The Arcade Learning Environment: Machado et al. (2018)."""

    kind: Literal["atari"] = "atari"
    implementation: ClassVar[str] = "rldsl.envs.make:atari"
    id: AtariId = Field(kw_only=False, description="The game, as in ALE/<game>-v5")
    sticky: Below1 = Field(
        default=0.25, description="Probability that an emulator frame repeats the previous action (sticky actions)"
    )
    frame_skip: Count = Field(default=4, description="Emulator frames per action")
    stack: Count = Field(default=4, description="Number of stacked frames in an observation")
    noop_max: Natural = Field(
        default=30, description="Upper limit, exclusive, of the random number of no-op frames at the start of a game"
    )
    fire_reset: Flag = Field(default=True, description="Press FIRE at the start of games that have this action")
    life_loss: Flag = Field(
        default=True, description="Treat a lost life as the end of an episode for learning; the game continues"
    )
    clip_rewards: Flag = Field(default=True, description="Clip the rewards used for learning to their sign")
    full_actions: Flag = Field(default=False, description="Use all 18 actions instead of the game's minimal set")
    max_frames: Count = Field(default=108_000, description="Emulator frames after which a game is truncated")

    @property
    def actions(self) -> ActionKind:
        return "discrete"


class Playground(Environment, frozen=True):
    """MuJoCo Playground: Zakka et al. (2025); needs the extra `playground`."""

    kind: Literal["playground"] = "playground"
    implementation: ClassVar[str] = "rldsl.envs.make:playground"
    id: PlaygroundId = Field(kw_only=False, description="Name of the Playground task")
    action_repeat: Count | None = Field(default=None, description="Action repeat; None: the task's default")
    max_episode_steps: Count | None = Field(default=None, description="Time limit; None: the task's default")

    @property
    def actions(self) -> ActionKind:
        return "continuous"

    def missing(self) -> str | None:
        package = find_spec("mujoco_playground")
        if package is None or package.origin is None:
            return "MuJoCo Playground is not installed; install it with pip install 'rldsl[playground]'"
        models = Path(package.origin).parent / "external_deps" / "mujoco_menagerie"
        if self.id in get_args(RobotId) and not models.is_dir():
            fetch = "from mujoco_playground._src.mjx_env import ensure_menagerie_exists as fetch; fetch()"
            return f'its robot models are not in {models}; download them with python -c "{fetch}"'
        return None


class Wrapper(Spec, frozen=True):
    """A Gymnasium wrapper around each environment. A bare string means a wrapper without arguments."""

    name: str = Field(kw_only=False, description="`module:Class` of the wrapper")
    kwargs: dict[str, JsonValue] = Field(default={}, description="Keyword arguments of the wrapper")

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data

    @field_validator("name")
    @classmethod
    def _module_and_class(cls, name: str) -> str:
        if not re.fullmatch(r"[\w.]+:\w+", name):
            raise ValueError("should be 'module:Class', such as 'gymnasium.wrappers:ClipReward'")
        return name

    def declared_by_user(self) -> None:
        declare(self.name)


class Gym(Environment, frozen=True):
    """Any registered Gymnasium id (`mypackage:MyEnv-v0` imports the package first), or a class (`mypackage:MyEnv`)."""

    kind: Literal["gym"] = "gym"
    implementation: ClassVar[str] = "rldsl.envs.make:gym"
    id: Annotated[str, MinLen(1), MaxLen(200)] = Field(kw_only=False, description="Gymnasium id, or `module:Class`")
    kwargs: dict[str, JsonValue] = Field(default={}, description="Keyword arguments of the environment")
    wrappers: tuple[Wrapper, ...] = Field(default=(), description="Wrappers, innermost first")
    max_episode_steps: Count | None = Field(default=None, description="Time limit; None: the registered one")
    metrics: tuple[MetricName, ...] = Field(
        default=(),
        exclude_if=operator.not_,
        description="Numbers of `info` at the end of episodes to log; not part of the identity if there are none",
    )

    @field_validator("metrics")
    @classmethod
    def _distinct_metrics(cls, metrics: tuple[str, ...]) -> tuple[str, ...]:
        return unique(metrics, "metrics")

    def _names(self) -> tuple[str, ...]:
        return (self.id, *(wrapper.name for wrapper in self.wrappers))

    def declared_by_user(self) -> None:
        for name in self._names():
            declare(name)

    def missing(self) -> str | None:
        for name in self._names():
            if module := undeclared_module(name):
                return f"the experiment file does not import {module}, which {name} needs; add `import {module}` to it"
            if module := absent_module(name):
                return (
                    f"there is no module {module}, which {name} needs: install it or put it beside the experiment file"
                )
        return None
