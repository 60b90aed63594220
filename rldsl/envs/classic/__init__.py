"""Gymnasium's classic control tasks, vectorized with numpy and bit-identical to Gymnasium."""

from rldsl.envs.classic.acrobot import Acrobot
from rldsl.envs.classic.base import ClassicEnv
from rldsl.envs.classic.cartpole import CartPole
from rldsl.envs.classic.mountain_car import MountainCar
from rldsl.envs.classic.mountain_car_continuous import MountainCarContinuous
from rldsl.envs.classic.pendulum import Pendulum
from rldsl.envs.contract import EnvError

ENVIRONMENTS: dict[str, type[ClassicEnv]] = {
    "Acrobot-v1": Acrobot,
    "CartPole-v1": CartPole,
    "MountainCar-v0": MountainCar,
    "MountainCarContinuous-v0": MountainCarContinuous,
    "Pendulum-v1": Pendulum,
}


def make(id: str, rows: int) -> ClassicEnv:
    """A batch of a classic control task by its Gymnasium id."""
    if id not in ENVIRONMENTS:
        raise EnvError(f"There is no classic environment {id!r}: choose one of {', '.join(ENVIRONMENTS)}.")
    return ENVIRONMENTS[id](rows)
