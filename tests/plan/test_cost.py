"""The cost model against the committed measurements of the speed benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.ours import WORKS
from rldsl import PPO, SAC, Classic, Gym, MuJoCo, Random, experiment
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.plan.cost import core_seconds

SPEED = Path(__file__).parents[2] / "results" / "speed.json"
MEASURED = {row["work"]: row["ours_fps"] for row in json.loads(SPEED.read_text())["medians"] if row["work"] in WORKS}


def seconds(builder: ExperimentBuilder, frames: float = 1e6) -> float:
    cost = core_seconds(builder.frames(frames).build().base())
    assert cost is not None
    return cost


@pytest.mark.parametrize("work", WORKS)
def test_it_is_within_a_factor_of_three(work: str) -> None:
    assert 1 / 3 < (1e6 / seconds(WORKS[work])) / MEASURED[work] < 3


def test_more_work_takes_longer() -> None:
    hopper = experiment("hopper").env(MuJoCo("Hopper-v5", num_envs=16))
    humanoid = experiment("humanoid").env(MuJoCo("Humanoid-v5", num_envs=16))
    assert seconds(hopper.agent(SAC()), 2e6) > 1.9 * seconds(hopper.agent(SAC()), 1e6)
    assert seconds(hopper.agent(SAC(batch=512))) > seconds(hopper.agent(SAC()))
    assert seconds(hopper.agent(PPO(epochs=20))) > seconds(hopper.agent(PPO()))
    assert seconds(humanoid.agent(PPO())) > seconds(hopper.agent(PPO()))
    assert seconds(hopper.agent(Random())) < seconds(hopper.agent(PPO()))


def test_nothing_is_claimed_about_environments_of_others() -> None:
    trial = experiment("x").env(Gym("CartPole-v1")).agent(PPO()).frames(1e4).build().base()
    assert core_seconds(trial) is None
    assert core_seconds(experiment("x").env(Classic("CartPole-v1")).agent(PPO()).frames(1e4).build().base())
