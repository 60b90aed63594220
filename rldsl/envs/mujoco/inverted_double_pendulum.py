"""InvertedDoublePendulum-v5: balance two poles, one on the other, on a cart."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.classic import libm
from rldsl.envs.mujoco.base import MuJoCoEnv, Rows


class InvertedDoublePendulum(MuJoCoEnv):
    id = "InvertedDoublePendulum-v5"
    model_file = "inverted_double_pendulum.xml"
    normal_velocities = True

    def _bind(self) -> None:
        self.site_xpos, self.qfrc_constraint = self.bind("site_xpos"), self.bind("qfrc_constraint")

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y = self.site_xpos[:, 0, 0], self.site_xpos[:, 0, 2]  # of the upper tip
        squared_x, squared_fall, squared_v1, squared_v2 = libm.square(
            np.stack((x, y - 2, self.qvel[:, 1], self.qvel[:, 2]))
        )
        fallen = y <= 1
        distance_penalty = 0.01 * squared_x + squared_fall
        velocity_penalty = 1e-3 * squared_v1 + 5e-3 * squared_v2
        return self.options.healthy_reward * ~fallen - distance_penalty - velocity_penalty, fallen

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        angles = self.qpos[rows, 1:]
        return (
            self.qpos[rows, :1],
            np.sin(angles),
            np.cos(angles),
            self.qvel[rows].clip(-10, 10),
            self.qfrc_constraint[rows, :1].clip(-10, 10),
        )
