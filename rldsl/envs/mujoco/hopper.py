"""Hopper-v5: hop forward on one leg (Erez, Tassa and Todorov, 2011)."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.mujoco.base import Rows
from rldsl.envs.mujoco.runner import HealthyRunner, inside


class Hopper(HealthyRunner):
    id = "Hopper-v5"
    model_file = "hopper.xml"

    def _healthy(self) -> np.ndarray:
        options, height, angle = self.options, self.qpos[:, 1], self.qpos[:, 2]
        variables = np.concatenate((self.qpos[:, 2:], self.qvel), axis=1)
        bounded = inside(variables, options.healthy_state_range).all(axis=1)
        upright = inside(height, options.healthy_z_range) & inside(angle, options.healthy_angle_range)
        healthy: np.ndarray = bounded & upright
        return healthy

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        return self._seen_positions(rows), self.qvel[rows].clip(-10, 10)
