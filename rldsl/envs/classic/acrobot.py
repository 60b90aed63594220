"""Acrobot-v1: swing the tip of a two-link pendulum above a line by a torque at the elbow (Sutton, 1996)."""

import numpy as np

from rldsl.envs.classic import libm
from rldsl.envs.classic.base import ClassicEnv, classic_spaces
from rldsl.envs.contract import Discrete

GRAVITY = 9.8
HALF_PI = np.pi / 2.0
SECONDS = 0.2
TORQUES = np.array([-1.0, 0.0, 1.0])
MAX_SPEEDS = np.array([[4 * np.pi], [9 * np.pi]])


class Acrobot(ClassicEnv):
    """State: two angles, then their velocities. The initial state and observation are float32, all others float64."""

    spaces = classic_spaces(6, Discrete(3))
    time_limit = 500
    variables = 4

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-0.1, 0.1, size=(4,)).astype(np.float32)

    def _observe(self, state: np.ndarray, observation: np.ndarray) -> None:
        angles, speeds = state[:2], state[2:]
        observation[0:4:2] = np.cos(angles)
        observation[1:4:2] = np.sin(angles)
        observation[4:] = speeds

    def _advance(self, actions: np.ndarray) -> None:
        self._integrate(TORQUES[actions])
        angles, speeds = self._state[:2], self._state[2:]
        _wrap(angles)
        np.minimum(np.maximum(speeds, -MAX_SPEEDS, out=speeds), MAX_SPEEDS, out=speeds)
        np.greater(-np.cos(angles[0]) - np.cos(angles[1] + angles[0]), 1.0, out=self._terminated)
        np.subtract(self._terminated, 1.0, out=self._reward)

    def _integrate(self, torque: np.ndarray) -> None:
        """One step of the fourth-order Runge-Kutta method, in place."""
        state = self._state
        k1 = _derivative(state, torque)
        k2 = _derivative(state + SECONDS / 2.0 * k1, torque)
        k3 = _derivative(state + SECONDS / 2.0 * k2, torque)
        k4 = _derivative(state + SECONDS * k3, torque)
        state += SECONDS / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)


def _derivative(state: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Equations of motion from Sutton and Barto's book for links of mass, length and inertia 1, centre of mass at 0.5.

    Factors of 1 are omitted, which changes no bit; the order of the other operations is Gymnasium's.
    """
    theta1, theta2, speed1, speed2 = state
    cos2, sin2 = np.cos(theta2), np.sin(theta2)
    d1 = 0.25 + (1.25 + cos2) + 1.0 + 1.0
    d2 = 0.25 + 0.5 * cos2 + 1.0
    squared_speed1, squared_speed2, squared_d2 = libm.square(np.array((speed1, speed2, d2)))
    phi2 = 0.5 * GRAVITY * np.cos(theta1 + theta2 - HALF_PI)
    phi1 = -0.5 * squared_speed2 * sin2 - speed2 * speed1 * sin2 + 1.5 * GRAVITY * np.cos(theta1 - HALF_PI) + phi2

    result = np.empty_like(state)
    result[:2] = state[2:]
    acceleration2 = np.divide(
        torque + d2 / d1 * phi1 - 0.5 * squared_speed1 * sin2 - phi2, 1.25 - squared_d2 / d1, out=result[3]
    )
    np.divide(-(d2 * acceleration2 + phi1), d1, out=result[2])
    return result


def _wrap(angles: np.ndarray) -> None:
    """Wraps angles to [-pi, pi] in place by repeated addition, as Gymnasium does: a modulo rounds differently."""
    while np.count_nonzero(above := angles > np.pi):
        np.subtract(angles, 2 * np.pi, out=angles, where=above)
    while np.count_nonzero(below := angles < -np.pi):
        np.add(angles, 2 * np.pi, out=angles, where=below)
