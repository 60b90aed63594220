"""Ant-v5: run on four legs (Schulman et al., 2015)."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.contract import ALL_ROWS
from rldsl.envs.mujoco.base import Rows
from rldsl.envs.mujoco.runner import HealthyRunner

TORSO = 1


class Ant(HealthyRunner):
    id = "Ant-v5"
    model_file = "ant.xml"
    normal_velocities = True
    needs_contact_forces = True
    ground_positions = 2

    def _bind(self) -> None:
        self.xpos, self.cfrc_ext = self.bind("xpos"), self.bind("cfrc_ext")

    def _place(self, rows: Rows) -> np.ndarray:
        return self.xpos[rows, TORSO, 0]

    def _healthy(self) -> np.ndarray:
        (low, high), height = self.options.healthy_z_range, self.qpos[:, 2]
        finite = np.isfinite(self.qpos).all(axis=1) & np.isfinite(self.qvel).all(axis=1)
        healthy: np.ndarray = finite & (low <= height) & (height <= high)
        return healthy

    def _costs(self, controls: np.ndarray) -> np.ndarray:
        contact = np.square(self._contact_forces(ALL_ROWS)).reshape(self.rows, -1).sum(axis=1)
        costs: np.ndarray = super()._costs(controls) + self.options.contact_cost_weight * contact
        return costs

    def _contact_forces(self, rows: Rows) -> np.ndarray:
        return self.cfrc_ext[rows].clip(*self.options.contact_force_range)

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        positions, velocities = super()._observe(rows)
        if not self.options.include_cfrc_ext_in_observation:
            return positions, velocities
        return positions, velocities, self._contact_forces(rows)[:, 1:].reshape(len(positions), -1)
