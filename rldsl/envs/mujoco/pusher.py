"""Pusher-v5: push a cylinder to a goal with an arm of seven joints."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.mujoco.base import MuJoCoEnv, Rows
from rldsl.envs.mujoco.distance import norms

JOINTS = 7


class Pusher(MuJoCoEnv):
    """The last four positions are those of the cylinder, sampled away from the goal, and of the goal, the origin."""

    id = "Pusher-v5"
    model_file = "pusher_v5.xml"
    time_limit = 100

    def _bind(self) -> None:
        self.xpos = self.bind("xpos")
        self.tip, self.cylinder, self.goal = (self.model.body(name).id for name in ("tips_arm", "object", "goal"))

    def _draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        while np.linalg.norm(cylinder := rng.uniform((-0.3, -0.2), (0.0, 0.2))) <= 0.17:
            pass
        positions = self.first_qpos.copy()
        positions[-4:-2] = cylinder
        positions[-2:] = 0.0
        velocities = self.first_qvel + rng.uniform(-0.005, 0.005, self.model.nv)
        velocities[-4:] = 0.0
        return positions, velocities

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        options, cylinder = self.options, self.xpos[:, self.cylinder]
        near = -norms(cylinder - self.xpos[:, self.tip]) * options.reward_near_weight
        distance = -norms(cylinder - self.xpos[:, self.goal]) * options.reward_dist_weight
        control = -np.square(controls).sum(axis=1) * options.reward_control_weight
        return distance + control + near, self._never()

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        bodies = (self.xpos[rows, body] for body in (self.tip, self.cylinder, self.goal))
        return self.qpos[rows, :JOINTS], self.qvel[rows, :JOINTS], *bodies
