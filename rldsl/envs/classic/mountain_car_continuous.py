"""MountainCarContinuous-v0: the mountain car with a push of any strength, which costs energy (Moore, 1990)."""

import numpy as np

from rldsl.envs.classic import libm
from rldsl.envs.classic.base import ClassicEnv, classic_spaces
from rldsl.envs.contract import Continuous

POWER = 0.0015
GRAVITY = 0.0025
MAX_SPEED = 0.07
LEFTMOST, RIGHTMOST = -1.2, 0.6
GOAL = 0.45
FORCE = Continuous(low=np.array([-1.0]), high=np.array([1.0]))


class MountainCarContinuous(ClassicEnv):
    """State: position and velocity. As in Gymnasium, the initial state is float64 and all later ones are float32;
    `_state` represents both exactly."""

    spaces = classic_spaces(2, FORCE)
    time_limit = 999
    variables = 2

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        return np.array([rng.uniform(-0.6, -0.4), 0.0])

    def _advance(self, actions: np.ndarray) -> None:
        force = FORCE.rescale(actions)[:, 0].astype(np.float32)
        first = (self._steps == 0).nonzero()[0]
        moved = _drive(self._state.astype(np.float32), force)
        if first.size:
            moved[:, first] = _drive(self._state[:, first], force[first])
        self._state[...] = moved
        position, velocity = moved
        np.logical_and(position >= GOAL, velocity >= 0, out=self._terminated)
        cost = np.square(force, dtype=np.float64) * 0.1
        np.subtract(self._terminated * 100.0, cost, out=self._reward)


def _drive(state: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Advances position and velocity in place, in their own dtype; the acceleration is always float32."""
    position, velocity = state
    downhill = (GRAVITY * libm.cos(3 * position)).astype(np.float32)
    velocity += force * POWER - downhill
    np.minimum(np.maximum(velocity, -MAX_SPEED, out=velocity), MAX_SPEED, out=velocity)
    position += velocity
    np.minimum(np.maximum(position, LEFTMOST, out=position), RIGHTMOST, out=position)
    velocity[(position == LEFTMOST) & (velocity < 0)] = 0
    return state
