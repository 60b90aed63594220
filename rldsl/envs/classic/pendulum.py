"""Pendulum-v1: swing a pendulum up and balance it with limited torque."""

import numpy as np

from rldsl.envs.classic import libm
from rldsl.envs.classic.base import ClassicEnv, classic_spaces
from rldsl.envs.contract import Continuous

GRAVITY = 10.0
SECONDS = 0.05
MAX_SPEED = 8.0
WIDEST_START = np.array([np.pi, 1.0])  # angle and speed
TORQUE = Continuous(low=np.array([-2.0]), high=np.array([2.0]))


class Pendulum(ClassicEnv):
    """A rod of mass and length 1. The torque is float32 as in Gymnasium, and numpy promotes it to float64."""

    spaces = classic_spaces(3, TORQUE)
    time_limit = 200
    variables = 2

    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-WIDEST_START, WIDEST_START)

    def _observe(self, state: np.ndarray, observation: np.ndarray) -> None:
        angle, speed = state
        observation[0] = np.cos(angle)
        observation[1] = np.sin(angle)
        observation[2] = speed

    def _advance(self, actions: np.ndarray) -> None:
        torque = TORQUE.rescale(actions)[:, 0].astype(np.float32)
        self._terminated.fill(False)
        np.negative(self._costs(torque), out=self._reward)
        angle, speed = self._state
        speed += (3 * GRAVITY / 2 * np.sin(angle) + 3.0 * torque) * SECONDS
        np.minimum(np.maximum(speed, -MAX_SPEED, out=speed), MAX_SPEED, out=speed)
        angle += speed * SECONDS

    def _costs(self, torque: np.ndarray) -> np.ndarray:
        angle, speed = self._state
        upright = (angle + np.pi) % (2 * np.pi) - np.pi
        squared_angle, squared_speed = libm.square(np.array((upright, speed)))
        costs: np.ndarray = squared_angle + 0.1 * squared_speed + 0.001 * libm.square_float32(torque)
        return costs
