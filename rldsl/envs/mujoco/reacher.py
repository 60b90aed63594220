"""Reacher-v5: touch a target with the tip of an arm of two links."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.contract import ALL_ROWS
from rldsl.envs.mujoco.base import MuJoCoEnv, Rows
from rldsl.envs.mujoco.distance import norms


class Reacher(MuJoCoEnv):
    """The last two positions are those of the target, sampled uniformly from a disc."""

    id = "Reacher-v5"
    model_file = "reacher.xml"
    time_limit = 50

    def _bind(self) -> None:
        self.xpos = self.bind("xpos")
        self.fingertip, self.target = (self.model.body(name).id for name in ("fingertip", "target"))

    def _draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        positions = rng.uniform(-0.1, 0.1, self.model.nq) + self.first_qpos
        while np.linalg.norm(goal := rng.uniform(-0.2, 0.2, 2)) >= 0.2:
            pass
        positions[-2:] = goal
        velocities = self.first_qvel + rng.uniform(-0.005, 0.005, self.model.nv)
        velocities[-2:] = 0.0
        return positions, velocities

    def _to_target(self, rows: Rows) -> np.ndarray:
        vector: np.ndarray = self.xpos[rows, self.fingertip] - self.xpos[rows, self.target]
        return vector

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distance = -norms(self._to_target(ALL_ROWS)) * self.options.reward_dist_weight
        control = -np.square(controls).sum(axis=1) * self.options.reward_control_weight
        return distance + control, self._never()

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        angles = self.qpos[rows, :2]
        return np.cos(angles), np.sin(angles), self.qpos[rows, 2:], self.qvel[rows, :2], self._to_target(rows)[:, :2]
