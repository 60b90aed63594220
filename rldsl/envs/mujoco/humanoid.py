"""Humanoid-v5: run forward on two legs without falling (Tassa, Erez and Todorov, 2012)."""

import numpy as np

from rldsl.envs.mujoco.base import Rows
from rldsl.envs.mujoco.humanoid_body import HumanoidBody
from rldsl.envs.mujoco.runner import HealthyRunner, inside


class Humanoid(HumanoidBody, HealthyRunner):
    id = "Humanoid-v5"
    model_file = "humanoid.xml"

    def _bind(self) -> None:
        super()._bind()
        self.xipos = self.bind("xipos")
        self.mass = self.model.body_mass.sum()

    def _place(self, rows: Rows) -> np.ndarray:
        """x of the centre of mass. All three coordinates are computed, because x alone would round differently."""
        centre: np.ndarray = np.einsum("b,nbj->nj", self.model.body_mass, self.xipos[rows]) / self.mass
        return centre[:, 0]

    def _healthy(self) -> np.ndarray:
        return inside(self.qpos[:, 2], self.options.healthy_z_range)

    def _costs(self, controls: np.ndarray) -> np.ndarray:
        weight, limits = self.options.contact_cost_weight, self.options.contact_cost_range
        costs: np.ndarray = self._control_cost() + self._contact_cost(weight, limits)
        return costs
