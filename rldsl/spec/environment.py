"""Environments: one model a family."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from annotated_types import MinLen
from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from rldsl.spec import mujoco_options
from rldsl.spec.base import Below1, Count, Flag, Kind, Natural, Spec
from rldsl.spec.catalog import CONTINUOUS, AtariId, Box2DId, ClassicId, MuJoCoId, PlaygroundId, RobotId

ActionKind = Literal["discrete", "continuous"]


class Environment(Kind, frozen=True):
    """What a session's agent acts in: `num_envs` copies, stepped together."""

    id: str
    num_envs: Count = Field(default=1, description="Environments that a session steps together")

    @property
    def actions(self) -> ActionKind | None:
        """The kind of its action space, where the spec can know it."""
        return None

    def missing(self) -> str | None:
        """What this machine lacks to run it and how to get it; None: nothing. Looks, but imports nothing."""
        return None

    @property
    def label(self) -> str:
        """What tables and directories call it."""
        return self.id

    @property
    def slug(self) -> str:
        """The label as the name of a directory."""
        return re.sub(r"[^a-z0-9.-]+", "-", self.label.lower()).strip("-.") or self.kind


class Classic(Environment, frozen=True):
    """Gymnasium's classic control, stepped as one numpy batch."""

    kind: Literal["classic"] = "classic"
    implementation: ClassVar[str] = "rldsl.envs.make:classic"
    id: ClassicId = Field(kw_only=False, description="As Gymnasium calls it")

    @property
    def actions(self) -> ActionKind:
        return "continuous" if self.id in CONTINUOUS else "discrete"


class Box2D(Environment, frozen=True):
    """Gymnasium's Box2D environments, or EnvPool's, which are other programs: the backend is part of the work."""

    kind: Literal["box2d"] = "box2d"
    implementation: ClassVar[str] = "rldsl.envs.make:box2d"
    id: Box2DId = Field(kw_only=False, description="As Gymnasium calls it")
    backend: Literal["gymnasium", "envpool"] = Field(
        default="gymnasium", description="Who steps it; envpool is faster and needs the extra `envpool`"
    )
    max_episode_steps: Count | None = Field(default=None, description="Time limit; none: the registered one")

    @property
    def actions(self) -> ActionKind:
        return "continuous" if self.id in CONTINUOUS else "discrete"

    def missing(self) -> str | None:
        if self.backend == "envpool" and find_spec("envpool") is None:
            return "EnvPool is not installed; pip install 'rldsl[envpool]' brings it"
        return None


class MuJoCo(Environment, frozen=True):
    """Gymnasium's MuJoCo tasks."""

    kind: Literal["mujoco"] = "mujoco"
    implementation: ClassVar[str] = "rldsl.envs.make:mujoco"
    id: MuJoCoId = Field(kw_only=False, description="As Gymnasium calls it")
    options: dict[str, JsonValue] = Field(
        default={}, description="Options of the task, as Gymnasium calls them; a range may have None for no limit"
    )

    @field_validator("options", mode="before")
    @classmethod
    def _options_of_the_task(cls, options: Any, info: ValidationInfo) -> Any:
        known = isinstance(options, dict) and "id" in info.data  # what is wrong otherwise is said elsewhere
        return mujoco_options.checked(info.data["id"], options) if known else options

    @property
    def actions(self) -> ActionKind:
        return "continuous"


class Atari(Environment, frozen=True):
    """The Arcade Learning Environment: Machado et al. (2018)."""

    kind: Literal["atari"] = "atari"
    implementation: ClassVar[str] = "rldsl.envs.make:atari"
    id: AtariId = Field(kw_only=False, description="The game, as in ALE/<game>-v5")
    sticky: Below1 = Field(default=0.25, description="Chance that an emulator frame repeats the action before")
    frame_skip: Count = Field(default=4, description="Emulator frames of one action")
    stack: Count = Field(default=4, description="Screens of one observation")
    noop_max: Natural = Field(default=30, description="A game starts after fewer idle emulator frames than this")
    fire_reset: Flag = Field(default=True, description="Press fire at the start of a game that has it")
    life_loss: Flag = Field(default=True, description="A lost life ends the episode for learning, not the game")
    clip_rewards: Flag = Field(default=True, description="Learn from the sign of the reward")
    full_actions: Flag = Field(default=False, description="All 18 actions instead of the game's own")
    max_frames: Count = Field(default=108_000, description="Emulator frames after which a game is cut")

    @property
    def actions(self) -> ActionKind:
        return "discrete"


class Playground(Environment, frozen=True):
    """MuJoCo Playground: Zakka et al. (2025); needs the extra `playground`."""

    kind: Literal["playground"] = "playground"
    implementation: ClassVar[str] = "rldsl.envs.make:playground"
    id: PlaygroundId = Field(kw_only=False, description="As Playground calls it")
    action_repeat: Count | None = Field(default=None, description="Steps of the task in one; none: the task's own")
    max_episode_steps: Count | None = Field(default=None, description="Time limit; none: the task's own")

    @property
    def actions(self) -> ActionKind:
        return "continuous"

    def missing(self) -> str | None:
        package = find_spec("mujoco_playground")
        if package is None or package.origin is None:
            return "MuJoCo Playground is not installed; pip install 'rldsl[playground]' brings it"
        models = Path(package.origin).parent / "external_deps" / "mujoco_menagerie"
        if self.id in get_args(RobotId) and not models.is_dir():
            fetch = "from mujoco_playground._src.mjx_env import ensure_menagerie_exists as fetch; fetch()"
            return f'its robot models are not in {models}; with a network, python -c "{fetch}" brings them'
        return None


class Wrapper(Spec, frozen=True):
    """A Gymnasium wrapper around each environment; its name alone stands for one without arguments."""

    name: str = Field(kw_only=False, description="As `module:Class`")
    kwargs: dict[str, JsonValue] = Field(default={}, description="Arguments of the wrapper")

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


class Gym(Environment, frozen=True):
    """Any other Gymnasium id, a user's own included (`mypackage:MyEnv-v0`), or a user's class (`mypackage:MyEnv`)."""

    kind: Literal["gym"] = "gym"
    implementation: ClassVar[str] = "rldsl.envs.make:gym"
    id: Annotated[str, MinLen(1)] = Field(kw_only=False, description="As registered with Gymnasium, or a class")
    kwargs: dict[str, JsonValue] = Field(default={}, description="Arguments of the environment")
    wrappers: tuple[Wrapper, ...] = Field(default=(), description="Around the environment, the innermost first")
    max_episode_steps: Count | None = Field(default=None, description="Time limit; none: the registered one")
