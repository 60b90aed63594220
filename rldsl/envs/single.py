"""One row of an environment as a plain `gymnasium.Env`, for tools that know no other kind."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rldsl.envs.contract import Continuous, EnvError, VectorEnv


class SingleEnv(gymnasium.Env):
    """A VectorEnv of one row without its autoreset: a step that ends an episode gives that episode's last observation.

    Actions are those of the VectorEnv: continuous ones in [-1, 1]. After an episode's end, `reset()` gives the next
    one of the row's random stream; in the middle of one, it starts the row anew from a seed drawn from `np_random`.
    """

    def __init__(self, env: VectorEnv) -> None:
        if env.rows != 1:
            raise EnvError(f"A single environment needs a VectorEnv of one row, but this one has {env.rows}.")
        self._env = env
        self._next_start: np.ndarray | None = None
        self.observation_space = _observation_space(env.spaces.observation_shape, env.spaces.observation_dtype)
        action = env.spaces.action
        self.action_space = (
            spaces.Box(-1.0, 1.0, action.shape, np.float32)
            if isinstance(action, Continuous)
            else spaces.Discrete(action.n)
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        if seed is None and self._next_start is not None:
            start = self._next_start
        else:
            start = self._env.reset([self._drawn_seed() if seed is None else seed])[0].copy()
        self._next_start = None
        return start, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        step = self._env.step(np.asarray(action)[None])
        ended, newest = bool(step.ended.size), step.observation[0].copy()
        self._next_start = newest if ended else None
        observation = step.final_observation[0] if ended else newest
        return observation, float(step.reward[0]), bool(step.terminated[0]), bool(step.truncated[0]), {}

    def close(self) -> None:
        self._env.close()

    def _drawn_seed(self) -> int:
        return int(self.np_random.integers(2**31))


def _observation_space(shape: tuple[int, ...], dtype: np.dtype) -> spaces.Box:
    """The widest Box of the type: the contract says nothing narrower."""
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return spaces.Box(limits.min, limits.max, shape, dtype.type)
    return spaces.Box(-np.inf, np.inf, shape, dtype.type)
