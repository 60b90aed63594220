"""Any Gymnasium environment, in a SyncVectorEnv."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation

from rldsl.envs import gym_state
from rldsl.envs.contract import ALL_ROWS, Continuous, Discrete, EnvError, Spaces, Step, VectorEnv
from rldsl.envs.gym_info import episode_metrics
from rldsl.envs.gym_make import Wrap, make_env


class GymnasiumEnv(VectorEnv):
    """A batch of `make_env(id, ...)`.

    Observations other than Box are flattened into one vector, with discrete parts one-hot encoded.
    `max_episode_steps` replaces the registered time limit. Box actions of any shape are flattened to [rows, dim].
    Environments with `get_state` and `set_state` resume exactly (`gym_state`). `metrics` names numbers of `info`.
    """

    def __init__(
        self,
        id: str,
        rows: int,
        kwargs: Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
        wrappers: Sequence[Wrap] = (),
        metrics: Sequence[str] = (),
    ) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.id, self.rows, self.episode_metrics = id, rows, tuple(metrics)

        def make_row() -> gymnasium.Env:
            return _with_array_observations(make_env(id, kwargs or {}, max_episode_steps, wrappers), id)

        self._envs = SyncVectorEnv([make_row] * rows, copy=False, autoreset_mode=AutoresetMode.SAME_STEP)
        self._action_space: Any = self._envs.single_action_space
        box: Any = self._envs.single_observation_space
        self.spaces = Spaces(box.shape, box.dtype, _action(self._action_space, id))
        self._nothing_ended = np.empty((0, *box.shape), box.dtype)
        self._observation = np.zeros((rows, *box.shape), box.dtype)
        self.exact_resume = all(gym_state.can_save(env) for env in self._envs.envs)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        observation: np.ndarray
        observation, _ = self._envs.reset(seed=[*self._checked_seeds(seeds)])
        self._observation = observation
        return observation

    def step(self, actions: np.ndarray) -> Step:
        observation, reward, terminated, truncated, infos = self._envs.step(self.native_actions(actions))
        ended = (terminated | truncated).nonzero()[0]
        final_observation = self._stacked(infos["final_obs"][ended]) if ended.size else self._nothing_ended
        self._observation = observation
        metrics = episode_metrics(self.episode_metrics, infos, ended, self.id) if self.episode_metrics else None
        return Step(observation, reward, terminated, truncated, ended, final_observation, ended_metrics=metrics)

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        if not self.exact_resume:
            return super().state(rows)
        saved = [gym_state.save(env) for env in self._envs.envs[rows]]
        return {"rows": saved, "observation": self._observation[rows].copy()}

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        if not self.exact_resume:
            return super().restore(state, rows)
        for env, saved in zip(self._envs.envs[rows], state["rows"], strict=True):
            gym_state.restore(env, saved)
        self._observation = self._observation.copy()
        self._observation[rows] = state["observation"]
        return self._observation

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


class _KeptFinalObservation(gym_state.StatelessWrapper):
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
