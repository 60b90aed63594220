"""Tasks of MuJoCo Playground train for a moment; `make test` runs this in an environment of its own."""

from __future__ import annotations

import pytest

from tests.experiments.smoke import train
from tests.project import Project

pytest.importorskip("mujoco_playground", reason="the extra `playground` is not installed here")

SMALL = ("--set", "env.num_envs=16", "--set", "agent.rollout=32", "--set", "agent.minibatch=128")


@pytest.mark.parametrize("task", ["cartpole-swingup", "pendulum-swingup"])
def test_a_task_of_dm_control_trains(project: Project, task: str) -> None:
    """Two of 25: JAX compiles each for up to a minute."""
    train(project, "playground/dm_control.py", 2048, "--only", f"dm-control-{task}/ppo", *SMALL)


def test_the_budget_for_a_cpu_trains(project: Project) -> None:
    train(project, "playground/cpu.py", 2048, "--only", "reacher-easy", *SMALL)
