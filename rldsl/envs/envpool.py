"""EnvPool environments: C++ on threads; needs the extra `envpool`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rldsl.envs.contract import Continuous, Discrete, EnvError, Spaces, Step, VectorEnv


class EnvPoolEnv(VectorEnv):
    """A batch of `envpool.make(id)` with same-step autoreset.

    EnvPool itself resets in the step after the end of an episode and ignores the action of that step. Here ended rows
    are reset immediately, so there is no such step.
    """

    def __init__(self, id: str, rows: int, threads: int = 1, max_episode_steps: int | None = None) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.rows = rows
        self._envpool, self._id = _envpool(), id
        limit = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
        self._config = {"num_envs": rows, "num_threads": min(threads, rows), **limit}
        spec = self._envpool.make_spec(id)
        box = spec.observation_space
        self.spaces = Spaces(box.shape, box.dtype, _action(spec.action_space))
        self._action_dtype = spec.action_space.dtype
        self._pool: Any = None

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Makes a new pool, because a pool takes its seeds when it is created."""
        seeds = self._checked_seeds(seeds)
        self.close()
        observation: np.ndarray
        self._pool = self._envpool.make(self._id, env_type="gymnasium", seed=seeds, **self._config)
        observation, _ = self._pool.reset()
        return observation

    def step(self, actions: np.ndarray) -> Step:
        observation, reward, terminated, truncated, _ = self._pool.step(self._native(actions))
        ended = np.flatnonzero(terminated | truncated)
        final_observation = observation[ended]
        if ended.size:
            observation[ended], _ = self._pool.reset(ended.astype(np.int32))
        return Step(observation, reward.astype(np.float64), terminated, truncated, ended, final_observation)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _native(self, actions: np.ndarray) -> np.ndarray:
        action = self.spaces.action
        native = action.rescale(actions) if isinstance(action, Continuous) else actions
        return native.astype(self._action_dtype)


def _envpool() -> Any:
    try:
        import envpool
    except ImportError as error:
        raise EnvError(f"EnvPool is not installed ({error}): pip install 'rldsl[envpool]' installs it.") from None
    return envpool


def _action(space: Any) -> Discrete | Continuous:
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    return Continuous(space.low.astype(np.float64), space.high.astype(np.float64))
