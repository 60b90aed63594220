"""Base classes of the locomotion tasks, which reward the velocity along x."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rldsl.envs.contract import ALL_ROWS
from rldsl.envs.mujoco.base import MuJoCoEnv, Rows


class Runner(MuJoCoEnv):
    """The reward is the forward velocity minus a control cost."""

    ground_positions: ClassVar[int] = 1
    """Number of leading entries of qpos that are the position on the ground, excluded from observations by default."""

    def __init__(self, rows: int, options: Mapping[str, Any], threads: int = 1) -> None:
        super().__init__(rows, options, threads)
        self._last_place = np.zeros(rows)

    def _place(self, rows: Rows) -> np.ndarray:
        """The x positions from which the velocity is computed."""
        return self.qpos[rows, 0]

    def _costs(self, controls: np.ndarray) -> np.ndarray:
        cost: np.ndarray = self.options.ctrl_cost_weight * np.square(controls).sum(axis=1)
        return cost

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._forward_reward() - self._costs(controls), self._never()

    def _forward_reward(self) -> np.ndarray:
        """Call it once per step: it also stores the positions from which the next velocity is computed."""
        place = self._place(ALL_ROWS)
        velocity = (place - self._last_place) / self.seconds
        self._last_place[:] = place
        reward: np.ndarray = self.options.forward_reward_weight * velocity
        return reward

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        return self._seen_positions(rows), self.qvel[rows]

    def _seen_positions(self, rows: Rows) -> np.ndarray:
        return self.qpos[rows, self.ground_positions * self.options.exclude_current_positions_from_observation :]

    def _begin(self, rows: np.ndarray) -> None:
        super()._begin(rows)
        self._last_place[rows] = self._place(rows)

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        return super().state(rows) | {"last_place": self._last_place[rows].copy()}

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        observation = super().restore(state, rows)
        self._last_place[rows] = state["last_place"]
        return observation


class HealthyRunner(Runner):
    """A runner with a reward for being healthy. By default an episode terminates when it becomes unhealthy."""

    @abstractmethod
    def _healthy(self) -> np.ndarray: ...

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        healthy = self._healthy()
        rewards = self._forward_reward() + healthy * self.options.healthy_reward
        terminated = ~healthy if self.options.terminate_when_unhealthy else self._never()
        return rewards - self._costs(controls), terminated


def inside(values: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    low, high = limits
    return (low < values) & (values < high)
