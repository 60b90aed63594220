"""Gymnasium's MuJoCo tasks, stepped by MuJoCo's own batches and equal to them bit for bit."""

import sys
from importlib.util import find_spec

from rldsl.envs.contract import VectorEnv
from rldsl.envs.mujoco.options import native
from rldsl.spec.environment import MuJoCo


def make(env: MuJoCo, rows: int, threads: int = 1) -> VectorEnv:
    """Rows of a task on so many threads; Gymnasium's own, on one, where mujoco has no batches."""
    if not has_batches():
        from rldsl.envs.gym import GymnasiumEnv

        print(  # noqa: T201
            f"This mujoco has no `mujoco.batch`: {env.id} goes through Gymnasium, slower and without exact resume; "
            "`pip install -U mujoco` brings it.",
            file=sys.stderr,
        )
        return GymnasiumEnv(env.id, rows, native(env.options))
    from rldsl.envs.mujoco.tasks import TASKS

    return TASKS[env.id](rows, env.options, threads)


def has_batches() -> bool:
    """Whether the installed mujoco steps many simulations at once, as it does from 3.17 on."""
    return find_spec("mujoco.batch") is not None
