"""Gymnasium's MuJoCo tasks on `mujoco.batch`, bit-identical to Gymnasium."""

import sys
from importlib.util import find_spec

from rldsl.envs.contract import VectorEnv
from rldsl.envs.mujoco.options import native
from rldsl.spec.environment import MuJoCo


def make(env: MuJoCo, rows: int, threads: int = 1) -> VectorEnv:
    """A batch of a task; falls back to Gymnasium's environment if the installed mujoco has no `mujoco.batch`."""
    if not has_batches():
        from rldsl.envs.gym import GymnasiumEnv

        print(  # noqa: T201
            f"This version of mujoco has no `mujoco.batch`: {env.id} runs through Gymnasium, slower and without exact "
            "resume; `pip install -U mujoco` installs a newer one.",
            file=sys.stderr,
        )
        return GymnasiumEnv(env.id, rows, native(env.options))
    from rldsl.envs.mujoco.tasks import TASKS

    return TASKS[env.id](rows, env.options, threads)


def has_batches() -> bool:
    """Whether the installed mujoco has `mujoco.batch` (3.17 and later)."""
    return find_spec("mujoco.batch") is not None
