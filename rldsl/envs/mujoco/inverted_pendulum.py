"""InvertedPendulum-v5: balance a pole on a cart (after Barto, Sutton and Anderson, 1983)."""

from collections.abc import Sequence

import numpy as np

from rldsl.envs.mujoco.base import MuJoCoEnv, Rows


class InvertedPendulum(MuJoCoEnv):
    id = "InvertedPendulum-v5"
    model_file = "inverted_pendulum.xml"

    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        finite = np.isfinite(self.qpos).all(axis=1) & np.isfinite(self.qvel).all(axis=1)
        upright = finite & (np.abs(self.qpos[:, 1]) <= 0.2)
        return upright.astype(np.float64), ~upright

    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        return self.qpos[rows], self.qvel[rows]
