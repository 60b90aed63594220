"""The options of the MuJoCo tasks: Gymnasium's names and defaults, checked where they are written."""

import inspect
from typing import Any, get_args

import gymnasium
import pytest
from gymnasium.envs.registration import load_env_creator

from rldsl import MuJoCo, SpecError
from rldsl.envs.mujoco.options import complete, native
from rldsl.spec.catalog import MuJoCoId
from rldsl.spec.environment import Environment
from rldsl.spec.mujoco_options import DEFAULTS

IDS = get_args(MuJoCoId)
LEFT_OUT = {"self", "xml_file", "default_camera_config", "main_body", "uph_cost_weight", "kwargs"}


@pytest.mark.parametrize("id", IDS)
def test_names_and_defaults_are_gymnasiums(id: str) -> None:
    parameters = inspect.signature(load_env_creator(gymnasium.spec(id).entry_point).__init__).parameters
    theirs = {name: one.default for name, one in parameters.items() if name not in LEFT_OUT}
    assert native(DEFAULTS[id]) == theirs


def test_values_are_kept_as_plain_numbers_and_lists() -> None:
    env = MuJoCo("Hopper-v5", options={"frame_skip": 2.0, "healthy_reward": 2, "healthy_z_range": (0.5, None)})
    assert env.options == {"frame_skip": 2, "healthy_reward": 2.0, "healthy_z_range": [0.5, None]}
    assert type(env.options["frame_skip"]) is int and type(env.options["healthy_reward"]) is float
    assert Environment._dispatch(env.data()) == env
    assert complete(env.id, env.options).healthy_z_range == (0.5, float("inf"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ctrl_cost": 1.0}, "options of Hopper-v5 has no 'ctrl_cost'; did you mean ctrl_cost_weight?"),
        ({"contact_force_range": (0, 1)}, "options of Hopper-v5 has no 'contact_force_range'; valid: "),
        ({"zzz": 1}, "options of Hopper-v5 has no 'zzz'; valid: forward_reward_weight, "),
        ({"frame_skip": 0}, "options has a frame_skip that should be greater than 0"),
        ({"frame_skip": 2.5}, "options has a frame_skip that should be a whole number"),
        ({"healthy_reward": "much"}, "options has a healthy_reward that should be a valid number"),
        ({"terminate_when_unhealthy": 1}, "options has a terminate_when_unhealthy that should be a valid boolean"),
        ({"healthy_z_range": 0.7}, "options has a healthy_z_range that should be a valid tuple"),
        ({"healthy_z_range": (2.0, 1.0)}, "options has a healthy_z_range that should have its low end first"),
        ({"reset_noise_scale": -0.1}, "options has a reset_noise_scale that should be greater than or equal to 0"),
        ({"healthy_reward": float("nan")}, "options.healthy_reward"),
        (["frame_skip"], "options should be a valid dictionary"),
    ],
    ids=str,
)
def test_a_wrong_option_is_one_sentence(options: Any, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        MuJoCo("Hopper-v5", options=options)
    assert caught.value.sentence.startswith(f"MuJoCo.{sentence}")


def test_of_a_wrong_task_only_the_task_is_spoken_of() -> None:
    with pytest.raises(SpecError) as caught:
        MuJoCo("Hoper-v5", options={"frame_skip": 2})
    assert caught.value.sentence.startswith("MuJoCo.id has no 'Hoper-v5'; did you mean Hopper-v5")
