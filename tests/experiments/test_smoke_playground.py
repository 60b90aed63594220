"""Tasks of MuJoCo Playground train for a moment; `make test` runs this in an environment of its own."""

from __future__ import annotations

import pytest

from tests.experiments.smoke import train
from tests.project import Project

pytest.importorskip("mujoco_playground", reason="the extra `playground` is not installed here")

SMALL = ("--set", "env.num_envs=16", "--set", "agent.rollout=32", "--set", "agent.minibatch=128")


# Two of 25 tasks: JAX compiles each for up to a minute.
@pytest.mark.parametrize(
    ("file", "name"), [("dm_control.py", "dm-control-cartpole-swingup/ppo"), ("cpu.py", "pendulum-swingup/ppo")]
)
def test_a_task_of_dm_control_trains(project: Project, file: str, name: str) -> None:
    train(project, f"playground/{file}", 2048, "--only", name, *SMALL)
