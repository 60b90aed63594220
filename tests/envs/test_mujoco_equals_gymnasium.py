"""The MuJoCo tasks equal Gymnasium's bit for bit, over many episodes, with any options."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rldsl import MuJoCo
from rldsl.envs import Step
from rldsl.envs.mujoco import make
from rldsl.envs.mujoco.base import MuJoCoEnv
from rldsl.envs.mujoco.options import native
from rldsl.envs.mujoco.tasks import TASKS
from rldsl.envs.seeding import row_seeds

HEAVY = {"Ant-v5", "Humanoid-v5", "HumanoidStandup-v5"}

OPTIONS: dict[str, dict[str, Any]] = {
    "Ant-v5": {
        "frame_skip": 3,
        "forward_reward_weight": 1.7,
        "ctrl_cost_weight": 0.3,
        "contact_cost_weight": 0.05,
        "healthy_reward": 2.3,
        "healthy_z_range": (None, 0.8),
        "contact_force_range": (-0.3, 0.7),
        "reset_noise_scale": 0.05,
        "exclude_current_positions_from_observation": False,
        "include_cfrc_ext_in_observation": False,
    },
    "HalfCheetah-v5": {
        "frame_skip": 2,
        "forward_reward_weight": 0.7,
        "ctrl_cost_weight": 0.3,
        "reset_noise_scale": 0.3,
        "exclude_current_positions_from_observation": False,
    },
    "Hopper-v5": {
        "frame_skip": 2,
        "forward_reward_weight": 2.1,
        "ctrl_cost_weight": 0.3,
        "healthy_reward": 3,
        "terminate_when_unhealthy": False,
        "healthy_state_range": (-3.0, 3.0),
        "healthy_z_range": (0.9, 1.4),
        "healthy_angle_range": (None, 0.1),
        "reset_noise_scale": 0.1,
        "exclude_current_positions_from_observation": False,
    },
    "Humanoid-v5": {
        "frame_skip": 3,
        "forward_reward_weight": 0.9,
        "ctrl_cost_weight": 0.3,
        "contact_cost_weight": 1e-4,
        "contact_cost_range": (0.1, 2.0),
        "healthy_reward": 1.3,
        "healthy_z_range": (0.9, 1.9),
        "reset_noise_scale": 0.05,
        "exclude_current_positions_from_observation": False,
        "include_cvel_in_observation": False,
        "include_cfrc_ext_in_observation": False,
    },
    "HumanoidStandup-v5": {
        "frame_skip": 2,
        "ctrl_cost_weight": 0.3,
        "impact_cost_weight": 1e-4,
        "impact_cost_range": (None, 2.0),
        "reset_noise_scale": 0.05,
        "exclude_current_positions_from_observation": False,
        "include_cinert_in_observation": False,
        "include_qfrc_actuator_in_observation": False,
    },
    "InvertedDoublePendulum-v5": {"frame_skip": 2, "healthy_reward": 3.3, "reset_noise_scale": 0.2},
    "InvertedPendulum-v5": {"frame_skip": 3, "reset_noise_scale": 0.1},
    "Pusher-v5": {
        "frame_skip": 2,
        "reward_near_weight": 0.7,
        "reward_dist_weight": 1.3,
        "reward_control_weight": 0.3,
    },
    "Reacher-v5": {"frame_skip": 3, "reward_dist_weight": 1.3, "reward_control_weight": 0.3},
    "Swimmer-v5": {
        "frame_skip": 2,
        "forward_reward_weight": 0.7,
        "ctrl_cost_weight": 0.3,
        "reset_noise_scale": 0.0,
        "exclude_current_positions_from_observation": False,
    },
    "Walker2d-v5": {
        "frame_skip": 2,
        "forward_reward_weight": 0.7,
        "ctrl_cost_weight": 0.3,
        "healthy_reward": 0.3,
        "healthy_z_range": (1.0, None),
        "healthy_angle_range": (-0.4, 0.3),
        "reset_noise_scale": 0.02,
        "exclude_current_positions_from_observation": False,
    },
}


class Peer:
    """Gymnasium's own environments as rows of the same contract."""

    def __init__(self, spec: MuJoCo, rows: int) -> None:
        def make_row() -> gymnasium.Env:
            return gymnasium.make(spec.id, **native(spec.options))

        self.envs = SyncVectorEnv([make_row] * rows, autoreset_mode=AutoresetMode.SAME_STEP)

    def reset(self, seeds: list[int]) -> np.ndarray:
        return self.envs.reset(seed=seeds)[0]

    def step(self, actions: np.ndarray) -> Step:
        observation, reward, terminated, truncated, infos = self.envs.step(actions)
        ended = np.flatnonzero(terminated | truncated)
        final = np.array([infos["final_obs"][row] for row in ended]).reshape(-1, *observation.shape[1:])
        return Step(observation, reward, terminated, truncated, ended, final)


def assert_same_bits(ours: np.ndarray, theirs: np.ndarray, name: str) -> None:
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, name
    assert ours.tobytes() == theirs.tobytes(), f"{name}: differs by {np.abs(ours - theirs).max()}"


def assert_equal_runs(spec: MuJoCo, rows: int, steps: int) -> tuple[int, int]:
    """Both through the same random actions, some beyond the bounds; gives the terminations and truncations."""
    env, peer, seeds = make(spec, rows, threads=2), Peer(spec, rows), row_seeds(0, rows)
    assert isinstance(env, MuJoCoEnv)
    assert_same_bits(env.reset(seeds), peer.reset(seeds), "first observation")
    rng, action, terminations, truncations = np.random.default_rng(1), env.spaces.action, 0, 0
    for _ in range(steps):
        actions = rng.uniform(-1.2, 1.2, (rows, *action.shape)).astype(np.float32)
        ours, theirs = env.step(actions), peer.step(action.rescale(actions).astype(np.float32))
        for name in Step._fields[:6]:
            assert_same_bits(getattr(ours, name), getattr(theirs, name), name)
        terminations += int(ours.terminated.sum())
        truncations += int(ours.truncated.sum())
    return terminations, truncations


@pytest.mark.parametrize("id", TASKS)
def test_every_array_of_every_step_has_the_same_bits(id: str) -> None:
    rows = 4 if id in HEAVY else 16
    terminations, truncations = assert_equal_runs(MuJoCo(id), rows, steps=2_000)
    assert terminations + truncations >= 2 * rows


@pytest.mark.parametrize("id", TASKS)
def test_with_all_its_options_set_a_task_has_the_same_bits(id: str) -> None:
    assert_equal_runs(MuJoCo(id, options=OPTIONS[id]), rows=3, steps=250)


@pytest.mark.parametrize("id", ["Hopper-v5", "Walker2d-v5"])
def test_a_task_that_no_longer_terminates_reaches_its_time_limit(id: str) -> None:
    spec = MuJoCo(id, options={"terminate_when_unhealthy": False})
    assert assert_equal_runs(spec, rows=2, steps=1_010) == (0, 2)


@pytest.mark.parametrize("id", TASKS)
def test_time_limits_and_action_bounds_are_the_registered_ones(id: str) -> None:
    theirs, env = gymnasium.make(id), make(MuJoCo(id), 1)
    assert TASKS[id].time_limit == gymnasium.spec(id).max_episode_steps
    np.testing.assert_array_equal(env.spaces.action.low.astype(np.float32), theirs.action_space.low)
    np.testing.assert_array_equal(env.spaces.action.high.astype(np.float32), theirs.action_space.high)
    assert env.spaces.observation_shape == theirs.observation_space.shape
