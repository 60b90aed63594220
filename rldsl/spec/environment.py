"""Environments: one model a family."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import MinLen
from pydantic import Field, JsonValue, ValidationInfo, field_validator

from rldsl.spec import mujoco_options
from rldsl.spec.base import Below1, Count, Flag, Kind, Natural
from rldsl.spec.catalog import CONTINUOUS, AtariId, Box2DId, ClassicId, MuJoCoId, PlaygroundId

ActionKind = Literal["discrete", "continuous"]


class Environment(Kind, frozen=True):
    """What a session's agent acts in: `num_envs` copies, stepped together."""

    id: str
    num_envs: Count = Field(default=1, description="Environments that a session steps together")

    @property
    def actions(self) -> ActionKind | None:
        """The kind of its action space, where the spec can know it."""
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
    """Gymnasium's Box2D environments."""

    kind: Literal["box2d"] = "box2d"
    implementation: ClassVar[str] = "rldsl.envs.make:box2d"
    id: Box2DId = Field(kw_only=False, description="As Gymnasium calls it")

    @property
    def actions(self) -> ActionKind:
        return "continuous" if self.id in CONTINUOUS else "discrete"


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
    id: AtariId = Field(kw_only=False, description="The game, as in ALE/<game>-v5")
    sticky: Below1 = Field(default=0.25, description="Chance that the last action is repeated")
    frame_skip: Count = Field(default=4, description="Emulator frames of one action")
    noop_max: Natural = Field(default=30, description="Most idle actions at the start of a game")
    life_loss: Flag = Field(default=True, description="A lost life ends the episode for learning, not the game")
    full_actions: Flag = Field(default=False, description="All 18 actions instead of the game's own")

    @property
    def actions(self) -> ActionKind:
        return "discrete"


class Playground(Environment, frozen=True):
    """MuJoCo Playground: Zakka et al. (2025); needs the extra `playground`."""

    kind: Literal["playground"] = "playground"
    id: PlaygroundId = Field(kw_only=False, description="As Playground calls it")

    @property
    def actions(self) -> ActionKind:
        return "continuous"


class Gym(Environment, frozen=True):
    """Any other Gymnasium id, a user's own included (`mypackage:MyEnv-v0`)."""

    kind: Literal["gym"] = "gym"
    implementation: ClassVar[str] = "rldsl.envs.make:gym"
    id: Annotated[str, MinLen(1)] = Field(kw_only=False, description="As registered with Gymnasium")
    kwargs: dict[str, JsonValue] = Field(default={}, description="Arguments of the environment")
    max_episode_steps: Count | None = Field(default=None, description="Time limit; none: the registered one")
