"""The options of Gymnasium's MuJoCo tasks with Gymnasium's default values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from rldsl.spec.base import Count, Flag, NonNegative, Real
from rldsl.spec.catalog import MuJoCoId
from rldsl.spec.errors import suggestion

Range: TypeAlias = tuple[float | None, float | None]
"""Low and high; None for no limit on that side, since JSON has no infinity."""
Option: TypeAlias = bool | int | float | Range
"""The type of an option's default determines which values it accepts: a flag, a count, a number or a range."""

LOCOMOTION: dict[str, Option] = {
    "forward_reward_weight": 1.0,
    "exclude_current_positions_from_observation": True,
}
HEALTH: dict[str, Option] = {
    "healthy_reward": 1.0,
    "terminate_when_unhealthy": True,
}
HUMANOID: dict[str, Option] = {
    "frame_skip": 5,
    "ctrl_cost_weight": 0.1,
    "reset_noise_scale": 1e-2,
    "exclude_current_positions_from_observation": True,
    "include_cinert_in_observation": True,
    "include_cvel_in_observation": True,
    "include_qfrc_actuator_in_observation": True,
    "include_cfrc_ext_in_observation": True,
}

DEFAULTS: dict[MuJoCoId, dict[str, Option]] = {
    "Ant-v5": LOCOMOTION
    | HEALTH
    | {
        "frame_skip": 5,
        "ctrl_cost_weight": 0.5,
        "contact_cost_weight": 5e-4,
        "healthy_z_range": (0.2, 1.0),
        "contact_force_range": (-1.0, 1.0),
        "reset_noise_scale": 0.1,
        "include_cfrc_ext_in_observation": True,
    },
    "HalfCheetah-v5": LOCOMOTION | {"frame_skip": 5, "ctrl_cost_weight": 0.1, "reset_noise_scale": 0.1},
    "Hopper-v5": LOCOMOTION
    | HEALTH
    | {
        "frame_skip": 4,
        "ctrl_cost_weight": 1e-3,
        "healthy_state_range": (-100.0, 100.0),
        "healthy_z_range": (0.7, None),
        "healthy_angle_range": (-0.2, 0.2),
        "reset_noise_scale": 5e-3,
    },
    "Humanoid-v5": HUMANOID
    | HEALTH
    | {
        "forward_reward_weight": 1.25,
        "contact_cost_weight": 5e-7,
        "contact_cost_range": (None, 10.0),
        "healthy_reward": 5.0,
        "healthy_z_range": (1.0, 2.0),
    },
    # Gymnasium takes a `uph_cost_weight` too, and ignores it.
    "HumanoidStandup-v5": HUMANOID | {"impact_cost_weight": 0.5e-6, "impact_cost_range": (None, 10.0)},
    "InvertedDoublePendulum-v5": {"frame_skip": 5, "healthy_reward": 10.0, "reset_noise_scale": 0.1},
    "InvertedPendulum-v5": {"frame_skip": 2, "reset_noise_scale": 0.01},
    "Pusher-v5": {
        "frame_skip": 5,
        "reward_near_weight": 0.5,
        "reward_dist_weight": 1.0,
        "reward_control_weight": 0.1,
    },
    "Reacher-v5": {"frame_skip": 2, "reward_dist_weight": 1.0, "reward_control_weight": 1.0},
    "Swimmer-v5": LOCOMOTION | {"frame_skip": 4, "ctrl_cost_weight": 1e-4, "reset_noise_scale": 0.1},
    "Walker2d-v5": LOCOMOTION
    | HEALTH
    | {
        "frame_skip": 4,
        "ctrl_cost_weight": 1e-3,
        "healthy_z_range": (0.8, 2.0),
        "healthy_angle_range": (-1.0, 1.0),
        "reset_noise_scale": 5e-3,
    },
}


def checked(id: MuJoCoId, options: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The options as JSON values; raises if the task does not have an option or does not accept its value."""
    for name in options:
        if name not in DEFAULTS[id]:
            words = {"id": id, "name": repr(name), "hint": suggestion(str(name), DEFAULTS[id])}
            raise PydanticCustomError("unknown_field", "of {id} has no {name}; {hint}", words)
    return {name: _checked_value(name, type(DEFAULTS[id][name]), value) for name, value in options.items()}


def _checked_value(name: str, kind: type, value: Any) -> JsonValue:
    try:
        return _plain(_adapter(name, kind), value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"].removeprefix("Input ").removeprefix("Value error, ")
        raise ValueError(f"has a {name} that {problem}") from None


def _plain(adapter: TypeAdapter[Any], value: Any) -> JsonValue:
    valid: JsonValue = adapter.dump_python(adapter.validate_python(value), mode="json")
    return valid


@cache
def _adapter(name: str, kind: type) -> TypeAdapter[Any]:
    number = NonNegative if name == "reset_noise_scale" else Real
    types: dict[type, Any] = {bool: Flag, int: Count, float: number, tuple: _ORDERED}
    return TypeAdapter(types[kind])


def _ordered(limits: Range) -> Range:
    low, high = limits
    if low is not None and high is not None and low > high:
        raise ValueError("should have its low end first")
    return limits


_ORDERED = Annotated[tuple[Real | None, Real | None], AfterValidator(_ordered)]
