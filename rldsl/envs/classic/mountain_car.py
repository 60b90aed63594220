"""MountainCar-v0: rock an underpowered car up a hill, pushing left, not at all or right (Moore, 1990)."""

import numpy as np

from rldsl.envs.classic import libm
from rldsl.envs.classic.base import ClassicEnv, classic_spaces
from rldsl.envs.contract import Discrete

PUSHES = np.array([-0.001, 0.0, 0.001])
GRAVITY = 0.0025
MAX_SPEED = 0.07
LEFTMOST, RIGHTMOST = -1.2, 0.6
GOAL = 0.5


class MountainCar(ClassicEnv):
    """State: position and velocity. A wall on the left stops the car."""

    spaces = classic_spaces(2, Discrete(3))
    time_limit = 200
    variables = 2

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        return np.array([rng.uniform(-0.6, -0.4), 0.0])

    def _advance(self, actions: np.ndarray) -> None:
        position, velocity = self._state
        velocity += PUSHES[actions] + libm.cos(3 * position) * -GRAVITY
        np.minimum(np.maximum(velocity, -MAX_SPEED, out=velocity), MAX_SPEED, out=velocity)
        position += velocity
        np.minimum(np.maximum(position, LEFTMOST, out=position), RIGHTMOST, out=position)
        velocity[(position == LEFTMOST) & (velocity < 0)] = 0.0
        np.logical_and(position >= GOAL, velocity >= 0, out=self._terminated)
        self._reward.fill(-1.0)
