"""CartPole-v1: balance a pole on a cart by pushing the cart left or right (Barto, Sutton and Anderson, 1983)."""

import math

import numpy as np

from rldsl.envs.classic.base import ClassicEnv, classic_spaces
from rldsl.envs.contract import Discrete

GRAVITY = 9.8
POLE_MASS = 0.1
TOTAL_MASS = POLE_MASS + 1.0
HALF_LENGTH = 0.5
POLE_MOMENT = POLE_MASS * HALF_LENGTH
PUSHES = np.array([-10.0, 10.0])
SECONDS = 0.02
LIMITS = np.array([[2.4], [12 * 2 * math.pi / 360]])  # of the cart's position and of the pole's angle


class CartPole(ClassicEnv):
    """Equations of motion by Florian (2005), without friction, https://coneural.org/florian/papers/05_cart_pole.pdf,
    in Gymnasium's order of operations and with its explicit Euler integrator."""

    spaces = classic_spaces(4, Discrete(2))
    time_limit = 500
    variables = 4

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-0.05, 0.05, size=(4,))

    def _advance(self, actions: np.ndarray) -> None:
        positions, velocities = self._state[0::2], self._state[1::2]
        accelerations = self._accelerations(PUSHES[actions])
        positions += SECONDS * velocities
        velocities += SECONDS * accelerations
        outside = np.abs(positions) > LIMITS
        np.logical_or(outside[0], outside[1], out=self._terminated)
        self._reward.fill(1.0)

    def _accelerations(self, push: np.ndarray) -> np.ndarray:
        """Of the cart and of the pole."""
        _, _, theta, theta_dot = self._state
        cos, sin = np.cos(theta), np.sin(theta)
        drive = (push + POLE_MOMENT * (theta_dot * theta_dot) * sin) / TOTAL_MASS
        result = np.empty_like(self._state[:2])
        pole = np.divide(
            GRAVITY * sin - cos * drive,
            HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cos * cos) / TOTAL_MASS),
            out=result[1],
        )
        np.subtract(drive, POLE_MOMENT * pole * cos / TOTAL_MASS, out=result[0])
        return result
