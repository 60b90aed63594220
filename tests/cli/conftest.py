"""A project whose sessions have been trained once, for the tests that only look at them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import pytest

from tests.project import Project

EXPERIMENT = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(200).target(400)
    random = cartpole.agent(Random()).frames(2e4).seeds(2)

    if __name__ == "__main__":
        main(random)
"""
OVERRIDES = ("--frames", "2e3", "--set", "env.num_envs=2")


@dataclass(frozen=True)
class Trained:
    """The project, the command that was run in it and what that said."""

    project: Project
    said: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    project = Project(tmp_path_factory.mktemp("trained"))
    project.write(EXPERIMENT)
    return Trained(project, project.python("exp.py", "train", *OVERRIDES))
