"""Tasks rewarded for moving forward, along x."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rldsl.envs.contract import ALL_ROWS
from rldsl.envs.mujoco.base import MuJoCoEnv, Rows


class Runner(MuJoCoEnv):
    """The reward is the forward velocity less the cost of the controls."""

    ground_positions: ClassVar[int] = 1
    """How many positions say where on the ground the body is: the policy does not see them unless it is asked for."""

    def __init__(self, rows: int, options: Mapping[str, Any], threads: int = 1) -> None:
        super().__init__(rows, options, threads)
        self._last_place = np.zeros(rows)

    def _place(self, rows: Rows) -> np.ndarray:
        """Where along x the rows are, as the velocity has it."""
        return self.qpos[rows, 0]

    def _costs(self, controls: np.ndarray) -> np.ndarray:
        return self.options.ctrl_cost_weight * np.square(controls).sum(axis=1)

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._forward_reward() - self._costs(controls), self._never()

    def _forward_reward(self) -> np.ndarray:
        """To be asked for once in a step: the next one is measured from here."""
        place = self._place(ALL_ROWS)
        velocity = (place - self._last_place) / self.seconds
        self._last_place[:] = place
        return self.options.forward_reward_weight * velocity

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
    """A runner with a reward for staying healthy, whose episode ends, unless told otherwise, when it no longer is."""

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
