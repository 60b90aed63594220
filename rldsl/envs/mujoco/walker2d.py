"""Walker2d-v5: walk forward on two legs in a plane (Erez, Tassa and Todorov, 2011)."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.mujoco.base import Rows
from rldsl.envs.mujoco.runner import HealthyRunner, inside


class Walker2d(HealthyRunner):
    id = "Walker2d-v5"
    model_file = "walker2d_v5.xml"

    def _healthy(self) -> np.ndarray:
        height, angle = self.qpos[:, 1], self.qpos[:, 2]
        upright = inside(angle, self.options.healthy_angle_range)
        healthy: np.ndarray = inside(height, self.options.healthy_z_range) & upright
        return healthy

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        return self._seen_positions(rows), self.qvel[rows].clip(-10, 10)
