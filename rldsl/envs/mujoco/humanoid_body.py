"""Base class of the two humanoid tasks."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.mujoco.base import MuJoCoEnv, Rows

WORLD = 1
"""Number of bodies to skip: the world body."""
ROOT = 6
"""Number of degrees of freedom to skip: those of the free root joint, which has no actuator."""


class HumanoidBody(MuJoCoEnv):
    """Observes inertias, velocities and forces of all bodies besides joint positions and velocities."""

    needs_contact_forces = True

    def _bind(self) -> None:
        super()._bind()
        self.cinert, self.cvel, self.qfrc_actuator, self.cfrc_ext = map(
            self.bind, ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
        )

    def _control_cost(self) -> np.ndarray:
        """In float64, unlike in the other tasks, because Gymnasium computes it from the simulation's controls."""
        cost: np.ndarray = self.options.ctrl_cost_weight * np.square(self.ctrl).sum(axis=1)
        return cost

    def _contact_cost(self, weight: float, limits: tuple[float, float]) -> np.ndarray:
        cost: np.ndarray = weight * np.square(self.cfrc_ext).reshape(self.rows, -1).sum(axis=1)
        return cost.clip(*limits)

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        options = self.options
        parts = (
            (True, self.qpos[rows, 2 * options.exclude_current_positions_from_observation :]),
            (True, self.qvel[rows]),
            (options.include_cinert_in_observation, self.cinert[rows, WORLD:]),
            (options.include_cvel_in_observation, self.cvel[rows, WORLD:]),
            (options.include_qfrc_actuator_in_observation, self.qfrc_actuator[rows, ROOT:]),
            (options.include_cfrc_ext_in_observation, self.cfrc_ext[rows, WORLD:]),
        )
        return [part.reshape(len(part), -1) for included, part in parts if included]
