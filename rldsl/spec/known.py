"""Spaces, backend and exact resume of the built-in environments, without loading them.

Tests compare the table with the environments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, get_args

from rldsl.spec.catalog import AtariId, Box2DId, ClassicId, MuJoCoId, PlaygroundId
from rldsl.spec.environment import Atari, Box2D, Classic, Environment, Gym, MuJoCo, Playground

SIZES = {
    "CartPole-v1": (4, 2),
    "Acrobot-v1": (6, 3),
    "Pendulum-v1": (3, 1),
    "MountainCar-v0": (2, 3),
    "MountainCarContinuous-v0": (2, 1),
    "LunarLander-v3": (8, 4),
    "LunarLanderContinuous-v3": (8, 2),
    "BipedalWalker-v3": (24, 4),
    "BipedalWalkerHardcore-v3": (24, 4),
    "Ant-v5": (105, 8),
    "HalfCheetah-v5": (17, 6),
    "Hopper-v5": (11, 3),
    "Humanoid-v5": (348, 17),
    "HumanoidStandup-v5": (348, 17),
    "InvertedDoublePendulum-v5": (9, 1),
    "InvertedPendulum-v5": (4, 1),
    "Pusher-v5": (23, 7),
    "Reacher-v5": (10, 2),
    "Swimmer-v5": (8, 2),
    "Walker2d-v5": (17, 6),
}
"""Observation size, and the number of discrete actions or dimensions of a continuous action."""


class Known(NamedTuple):
    """An environment with one of its backends."""

    env: Environment
    observation: str
    actions: str
    backend: str
    exact_resume: bool


ANY_OTHER = Known(Gym("any other id or class"), "its own", "its own", "gymnasium", False)
"""The last row of the list: environments that are not built in."""


def known() -> Iterator[Known]:
    """Every built-in environment, family by family, once per backend; then `ANY_OTHER`."""
    for classic in get_args(ClassicId):
        yield _sized(Classic(classic), "float32", "numpy", True)
    for box2d in get_args(Box2DId):
        yield _sized(Box2D(box2d), "float32", "gymnasium", False)
        yield _sized(Box2D(box2d, backend="envpool"), "float32", "envpool", False)
    for mujoco in get_args(MuJoCoId):
        yield _sized(MuJoCo(mujoco), "float64", "mujoco", True)
    for game in get_args(AtariId):
        yield Known(Atari(game), "4x84x84 uint8", "Discrete", "ale_py", False)
    for task in get_args(PlaygroundId):
        yield Known(Playground(task), "by task", "Box", "jax", True)
    yield ANY_OTHER


def _sized(env: Environment, dtype: str, backend: str, exact_resume: bool) -> Known:
    observation, actions = SIZES[env.id]
    space = "Discrete" if env.actions == "discrete" else "Box"
    return Known(env, f"{observation} {dtype}", f"{space}({actions})", backend, exact_resume)
