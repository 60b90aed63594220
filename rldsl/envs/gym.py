"""Any Gymnasium environment, in a SyncVectorEnv."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation

from rldsl.envs.contract import Continuous, Discrete, EnvError, Spaces, Step, VectorEnv
from rldsl.envs.gym_make import Wrap, make_env


class GymnasiumEnv(VectorEnv):
    """A batch of `make_env(id, ...)`.

    Observations other than Box are flattened into one vector, with discrete parts one-hot encoded.
    `max_episode_steps` replaces the registered time limit. Box actions of any shape are flattened to [rows, dim].
    """

    def __init__(
        self,
        id: str,
        rows: int,
        kwargs: Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
        wrappers: Sequence[Wrap] = (),
    ) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.rows = rows

        def make_row() -> gymnasium.Env:
            return _with_array_observations(make_env(id, kwargs or {}, max_episode_steps, wrappers), id)

        self._envs = SyncVectorEnv([make_row] * rows, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        self._action_space: Any = self._envs.single_action_space
        box: Any = self._envs.single_observation_space
        self.spaces = Spaces(box.shape, box.dtype, _action(self._action_space, id))
        self._nothing_ended = np.empty((0, *box.shape), box.dtype)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        observation: np.ndarray
        observation, _ = self._envs.reset(seed=[*self._checked_seeds(seeds)])
        return observation

    def step(self, actions: np.ndarray) -> Step:
        observation, reward, terminated, truncated, infos = self._envs.step(self.native_actions(actions))
        ended = (terminated | truncated).nonzero()[0]
        final_observation = self._stacked(infos["final_obs"][ended]) if ended.size else self._nothing_ended
        return Step(observation, reward, terminated, truncated, ended, final_observation)

    def close(self) -> None:
        self._envs.close()

    def _stacked(self, observations: np.ndarray) -> np.ndarray:
        """Converts an object array of observations to one array with the dtype of the space."""
        return np.stack(list(observations), dtype=self.spaces.observation_dtype, casting="unsafe")

    def native_actions(self, actions: np.ndarray) -> np.ndarray:
        """Converts actions `[N]` or `[N, dim]` to the environment's own action space."""
        if isinstance(self.spaces.action, Continuous):
            native = self.spaces.action.rescale(actions).astype(self._action_space.dtype)
            return native.reshape(len(actions), *self._action_space.shape)
        shifted: np.ndarray = actions + self._action_space.start
        return shifted


class _KeptFinalObservation(gymnasium.Wrapper):
    """Copies the last observation of an episode, because the environment may reuse the array for the next episode."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            observation = np.array(observation)
        return observation, reward, terminated, truncated, info


def _with_array_observations(env: gymnasium.Env, id: str) -> gymnasium.Env:
    space = env.observation_space
    if isinstance(space, spaces.Box):
        return _KeptFinalObservation(env)
    if not _flattenable(space):
        env.close()
        raise EnvError(f"The observations of {id!r} are {space}, which cannot be flattened into a vector.")
    return FlattenObservation(env)


def _flattenable(space: spaces.Space[Any]) -> bool:
    """Whether the space flattens to a meaningful vector. Text flattens too, but only to character codes."""
    if isinstance(space, spaces.Dict):
        return all(map(_flattenable, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return all(map(_flattenable, space.spaces))
    return isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiBinary | spaces.MultiDiscrete)


def _action(space: spaces.Space[Any], id: str) -> Discrete | Continuous:
    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box):
        return Continuous(space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64))
    raise EnvError(f"The actions of {id!r} are {space}, but only Discrete and Box actions are supported.")
