"""Every classic, Box2D and MuJoCo experiment and ten Atari games train for a moment, with their own networks."""

from __future__ import annotations

import pytest

from tests.experiments.smoke import short_agents, train
from tests.project import ROOT, Project

FILES = [
    f"{family}/{path.name}"
    for family in ("classic", "box2d", "mujoco")
    for path in sorted((ROOT / "experiments" / family).glob("*.py"))
    if not path.name.endswith("_settings.py")
]
ATARI = (
    ("atari-alien/ppo", "atari-beamrider/a2c", "atari-breakout/ppo-nosticky", "atari-enduro/ppo", "atari-pong/sac"),
    (
        "atari-mspacman/crossq",
        "atari-qbert/a2c",
        "atari-seaquest/sac",
        "atari-spaceinvaders/ppo-lam70",
        "atari-hero/ppo",
    ),
)


@pytest.mark.parametrize("file", FILES)
def test_a_file_trains(project: Project, file: str) -> None:
    learns = not file.endswith("random_policy.py")
    train(project, file, 2048, *(short_agents(rollout=64, updates_per_frame=0.01) if learns else ()))


@pytest.mark.parametrize("games", ATARI, ids=["five", "five more"])
def test_atari_games_train(project: Project, games: tuple[str, ...]) -> None:
    chosen = (option for name in games for option in ("--only", name))
    train(project, "atari/suite.py", 512, *chosen, *short_agents(rollout=16, updates_per_frame=0.03))
