"""Evaluation: episodes without learning, in environments of their own, which do not change the training."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rldsl import PPO, Agent, Environment, SpecError, experiment
from rldsl.spec.budget import Budget, Evaluation
from rldsl.spec.experiment import Trial
from rldsl.spec.session import Session
from tests.agents.tiny import Bandit, Chain
from tests.project import work
from tests.train.attempts import Attempts
from tests.train.packs import CASES, PPO_SMALL, curve, session, train

EVERY_128 = Evaluation(128, episodes=3)


def without_evaluation(path: Path) -> list[dict[str, str]]:
    return [{name: cell for name, cell in row.items() if not name.startswith("eval_")} for row in work(path)]


@pytest.mark.parametrize("name", ["ppo_pendulum", "sarsa_epsilon", "a2c_recurrent", "random"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_training_is_the_same_with_and_without_evaluation(name: str, deterministic: bool, tmp_path: Path) -> None:
    agent, env = CASES[name]
    evaluation = EVERY_128.with_(deterministic=deterministic)
    evaluated = train(tmp_path, session(agent, env, frames=384, evaluation=evaluation)).directories[0].path
    plain = train(tmp_path, session(agent, env, frames=384)).directories[0].path
    assert without_evaluation(evaluated) == work(plain)
    assert not np.isnan(curve(evaluated)["eval_return"][-1])


def test_results_appear_at_the_log_point_after_the_evaluation(tmp_path: Path) -> None:
    agent = PPO(rollout=8, minibatch=32)
    env = Chain(num_envs=4)
    pack = train(tmp_path, session(agent, env, frames=512, log_every=32, evaluation=Evaluation(128)))
    points = curve(pack.directories[0].path)
    evaluated = points["frame"] > 128
    assert np.isnan(points["eval_return"][~evaluated]).all()
    assert set(points["eval_return"][evaluated]) == {1.0} and set(points["eval_length"][evaluated]) == {5.0}


def test_an_evaluation_waits_for_the_end_of_the_iteration(tmp_path: Path) -> None:
    """An iteration of 128 frames, with a log point and an evaluation due every 64."""
    agent = PPO_SMALL.with_(rollout=64)
    path = train(tmp_path, session(agent, frames=384, log_every=64, evaluation=Evaluation(64))).directories[0].path
    results = curve(path)["eval_return"]
    assert np.isnan(results[:2]).all()
    assert results[2] == results[3]
    assert len(set(results[2:])) > 1, "the policies of two iterations play alike, which shows nothing"


def test_the_last_log_point_has_the_last_evaluation(tmp_path: Path) -> None:
    path = train(tmp_path, session(PPO_SMALL, frames=256, evaluation=Evaluation(256))).directories[0].path
    results = curve(path)["eval_return"]
    assert np.isnan(results[:-1]).all() and not np.isnan(results[-1])


@pytest.mark.parametrize(
    ("budget", "interval"),
    [({"frames": 10_000, "log_every": 200}, "200 frames (log_every)"), ({"frames": 1e5}, "250 frames (frames / 400)")],
)
def test_an_evaluation_between_two_log_points_is_refused(budget: dict[str, float], interval: str) -> None:
    agent, env = CASES["ppo"]
    sentence = f"evaluation.every = 199 is finer than the log interval of {interval}"
    with pytest.raises(SpecError, match=re.escape(sentence)):
        Trial(agent=agent, env=env, budget=Budget(**budget), evaluation=Evaluation(199))
    assert Trial(agent=agent, env=env, budget=Budget(**budget), evaluation=Evaluation(250))


def test_it_is_refused_at_the_line_that_declares_it() -> None:
    declared = experiment("x").frames(1e5)
    with pytest.raises(SpecError, match=r"test_evaluation\.py:\d+: evaluation.every = 100 is finer") as error:
        declared.evaluate(every=100)
    assert "250 frames" in str(error.value)


@pytest.mark.parametrize(("deterministic", "expected"), [(True, {0.2, 1.0}), (False, None)])
def test_a_deterministic_evaluation_takes_the_likeliest_action(
    deterministic: bool, expected: set[float] | None, tmp_path: Path
) -> None:
    agent, evaluation = PPO(rollout=8, minibatch=32, lr=1e-5), Evaluation(64, episodes=20, deterministic=deterministic)
    pack = train(tmp_path, session(agent, Bandit(num_envs=4), frames=640, evaluation=evaluation))
    found = curve(pack.directories[0].path)["eval_return"][1:]
    if expected is None:
        assert ((found > 0.2) & (found < 1.0)).all(), "a policy that has learned little takes both arms"
    else:
        assert set(np.round(found, 6)) <= expected


def test_members_are_evaluated_together_as_they_are_alone(tmp_path: Path) -> None:
    agent, env = CASES["reinforce"]
    both = [session(agent, env, seed, evaluation=EVERY_128) for seed in range(2)]
    together = train(tmp_path / "together", *both)
    for member, one in enumerate(both):
        alone = train(tmp_path / "alone", one).directories[0].path
        for column, values in curve(together.directories[member].path).items():
            np.testing.assert_allclose(values, curve(alone)[column], rtol=5e-3, atol=1e-4, err_msg=column)


@pytest.mark.parametrize("name", ["ppo_pendulum", "a2c_recurrent"])
def test_an_evaluated_session_that_is_killed_has_the_same_curve(name: str, tmp_path: Path) -> None:
    agent, env = CASES[name]
    one = evaluated(agent, env)
    whole, broken = Attempts(tmp_path / "whole", one), Attempts(tmp_path / "broken", one)
    assert whole.run_to_end() == 0
    for points, later in ((2, 0.003), (5, 0.001), (8, 0.004)):
        broken.kill(points, later)
    assert broken.run_to_end() == 0
    assert work(broken.paths[0]) == work(whole.paths[0])


def evaluated(agent: Agent, env: Environment) -> Session:
    return session(agent, env, frames=512, log_every=32, checkpoint_every=64, evaluation=EVERY_128)
