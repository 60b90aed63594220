"""Every classic, Box2D and MuJoCo experiment and ten Atari games train for a moment, with their own networks."""

from __future__ import annotations

import pytest

from tests.experiments.smoke import OFF_POLICY, train
from tests.project import ROOT, Project

FILES = [
    f"{family}/{path.name}"
    for family in ("classic", "box2d", "mujoco")
    for path in sorted((ROOT / "experiments" / family).glob("*.py"))
    if not path.name.endswith("_settings.py")
]
ATARI = (
    "atari-alien/ppo",
    "atari-beamrider/a2c",
    "atari-breakout/ppo-nosticky",
    "atari-enduro/ppo",
    "atari-mspacman/crossq",
    "atari-pong/ppo",
    "atari-qbert/a2c",
    "atari-seaquest/sac",
    "atari-spaceinvaders/ppo-lam70",
    "atari-videopinball/ppo",
)


@pytest.mark.parametrize("file", FILES)
def test_a_file_trains(project: Project, file: str) -> None:
    on_policy = ("--set", "agent.rollout=64")
    train(project, file, 2048, *on_policy, *OFF_POLICY)


def test_ten_atari_games_train(project: Project) -> None:
    chosen = (option for name in ATARI for option in ("--only", name))
    train(project, "atari/suite.py", 1024, *chosen, "--set", "agent.rollout=16", *OFF_POLICY)
