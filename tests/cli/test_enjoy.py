"""`enjoy`: which session is played, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import OVERRIDES, Trained
from tests.project import Project

TWO_WORLDS = """
    from rldsl import Classic, Random, experiment, main

    chance = experiment("cartpole").agent(Random()).frames(400).log_every(100)
    main(
        chance.env(Classic("CartPole-v1")).named("cartpole"),
        chance.env(Classic("MountainCar-v0")).named("mountain"),
    )
"""


def test_the_session_with_the_best_return_is_played(trained: Trained) -> None:
    listed = json.loads(trained.project.rldsl("list", "--json").stdout)
    best = max(listed, key=lambda one: one["episode_return"])
    ran = trained.project.rldsl("enjoy", "exp.py", *OVERRIDES, "--episodes", 2)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stderr
    assert lines[0] == (
        f"cartpole/random seed {best['seed']} ({best['session']}), return {best['episode_return']:.1f} in training"
    )
    assert lines[-1].startswith("mean return ") and len(lines) == 4


def test_a_seed_can_be_asked_for(trained: Trained) -> None:
    for seed in (0, 1):
        ran = trained.project.python("exp.py", "enjoy", *OVERRIDES, "--seed", seed, "--episodes", 1, "--json")
        assert json.loads(ran.stdout)["session"].endswith(f"-s{seed}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--seed", 7), "error: no session with seed 7 has been started; started seeds: 0, 1"),
        (
            ("--set", "budget.log_every=300"),
            "error: nothing of cartpole/random has been trained in runs with these settings",
        ),
        (("--checkpoint", "lst"), "error: --checkpoint has no 'lst'; did you mean last?"),
        (("--episodes", 0), "Invalid value for '--episodes'"),
    ],
)
def test_what_is_not_there_is_one_sentence(trained: Trained, options: tuple[object, ...], said: str) -> None:
    ran = trained.project.python("exp.py", "enjoy", *OVERRIDES, *options)
    assert ran.returncode == 2 and said in ran.stderr and "Traceback" not in ran.stderr


def test_returns_of_different_environments_are_not_compared(project: Project) -> None:
    project.write(TWO_WORLDS)
    assert project.python("exp.py").returncode == 0
    ran = project.python("exp.py", "enjoy")
    assert ran.returncode == 2
    assert "choose with --only: cartpole, mountain are in different environments" in ran.stderr
    chosen = project.python("exp.py", "enjoy", "--only", "cartpole", "--episodes", 1)
    assert chosen.returncode == 0 and chosen.stdout.startswith("cartpole seed 0")
