"""`load_policy`: a trained policy as a function, in Gymnasium's own environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rldsl
from rldsl import A2C, Agent, Classic, Environment, Gym, MuJoCo, Random, SpecError
from rldsl.envs.seeding import row_seeds
from rldsl.play.enjoy import main
from rldsl.store.checkpoint import load_checkpoint
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir
from tests.train.packs import CASES, PPO_SMALL, RECURRENT, session, train

CARTPOLE, PENDULUM = Classic("CartPole-v1", num_envs=2), Classic("Pendulum-v1", num_envs=2)


def trained(runs: Path, agent: Agent, env: Environment, frames: int = 256) -> Path:
    return train(runs, session(agent, env, frames=frames)).directories[0].path


def returns_of_enjoy(directory: Path, episodes: int, capsys: pytest.CaptureFixture[str], *options: str) -> list[float]:
    capsys.readouterr()
    assert main([str(directory), "--json", "--episodes", str(episodes), *options]) == 0
    return [episode["return"] for episode in json.loads(capsys.readouterr().out)["episodes"]]


def returns_in_gymnasium(env: gymnasium.Env[Any, Any], policy: Any, episodes: int, **options: Any) -> list[float]:
    """The episodes that `enjoy` plays, in the loop that Gymnasium's documentation shows."""
    (seed,) = row_seeds(0, 1, "enjoy")
    returns = []
    observation, _ = env.reset(seed=seed)
    for _ in range(episodes):
        policy.reset()
        total, over = 0.0, False
        while not over:
            action = policy(observation, **options)
            assert env.action_space.contains(action)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
        observation, _ = env.reset()
    return returns


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        (PPO_SMALL.with_(normalize_observations=True), CARTPOLE),
        CASES["ppo_pendulum"],
        CASES["sac"],
        CASES["dqn"],
        (A2C(rollout=8, net=RECURRENT), CARTPOLE),
        (Random(), PENDULUM),
    ],
    ids=["ppo", "ppo_pendulum", "sac", "dqn", "recurrent", "random"],
)
@pytest.mark.parametrize("deterministic", [True, False])
def test_returns_in_plain_gymnasium_equal_those_of_enjoy(
    agent: Agent, env: Environment, deterministic: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = trained(tmp_path, agent, env)
    expected = returns_of_enjoy(directory, 3, capsys, *([] if deterministic else ["--stochastic"]))
    policy = rldsl.load_policy(directory)
    played = returns_in_gymnasium(gymnasium.make(env.id), policy, 3, deterministic=deterministic)
    assert played == expected


def test_actions_are_in_the_environments_own_range(tmp_path: Path) -> None:
    policy = rldsl.load_policy(trained(tmp_path, Random(), PENDULUM))
    actions = policy(np.zeros((500, 3)), deterministic=False)
    assert actions.shape == (500, 1) and actions.dtype == np.float32
    assert -2 <= actions.min() < -1.8 and 1.8 < actions.max() <= 2


def test_mujoco_and_gymnasium_environments(tmp_path: Path) -> None:
    for env in (MuJoCo("InvertedPendulum-v5", num_envs=2), Gym("InvertedPendulum-v5", num_envs=2)):
        policy, theirs = rldsl.load_policy(trained(tmp_path, PPO_SMALL, env)), gymnasium.make(env.id)
        observation, _ = theirs.reset(seed=0)
        action = policy(observation)
        assert theirs.action_space.contains(action)


def test_a_batch_gives_the_actions_of_its_observations(tmp_path: Path) -> None:
    policy = rldsl.load_policy(trained(tmp_path, PPO_SMALL, PENDULUM))
    observations = np.random.default_rng(0).normal(size=(7, 3))
    together = policy(observations)
    assert together.shape == (7, 1)
    np.testing.assert_allclose(together, [policy(observation) for observation in observations], rtol=1e-5, atol=1e-6)


def test_a_recurrent_policy_remembers_until_it_is_reset(tmp_path: Path) -> None:
    agent = A2C(rollout=8, net=RECURRENT, log_std=0.0)
    policy = rldsl.load_policy(trained(tmp_path, agent, PENDULUM))
    observation = np.array([1.0, 0.0, 0.0])
    first, second = policy(observation), policy(observation)
    assert first != second
    policy.reset()
    assert policy(observation) == first
    both = policy(np.stack([observation, observation]))
    np.testing.assert_allclose(both, [first, first], rtol=1e-5)
    policy.reset(np.array([False, True]))
    np.testing.assert_allclose(policy(np.stack([observation, observation])), [second, first], rtol=1e-5)


def test_checkpoints_can_be_chosen(tmp_path: Path) -> None:
    directory = trained(tmp_path, PPO_SMALL.with_(lr=1e-2), PENDULUM, frames=1024)
    best = load_checkpoint(directory / "checkpoints", tag="best")
    assert best is not None and best.frame < 1024
    observation = np.array([1.0, 0.0, 0.5])
    assert rldsl.load_policy(directory)(observation) == rldsl.load_policy(directory, "best")(observation)
    assert rldsl.load_policy(directory, "last")(observation) != rldsl.load_policy(directory, "best")(observation)


def test_a_session_is_a_run_an_id_or_a_directory(tmp_path: Path) -> None:
    directory = trained(tmp_path, PPO_SMALL, CARTPOLE)
    (run,) = rldsl.load_runs(tmp_path)
    observation = np.array([0.0, 0.1, 0.0, 0.1])
    named = [(run,), (directory,), (str(directory),)]
    policies = [rldsl.load_policy(*arguments) for arguments in named]  # type: ignore[arg-type]
    policies.append(rldsl.load_policy(run.id, runs=tmp_path))
    policies.append(rldsl.load_policy(run.id[:6], runs=tmp_path))
    assert len({int(policy(observation)) for policy in policies}) == 1


def test_sampled_actions_follow_the_seed(tmp_path: Path) -> None:
    directory = trained(tmp_path, PPO_SMALL, PENDULUM)
    observation = np.array([1.0, 0.0, 0.5])
    one, same, other = (rldsl.load_policy(directory, seed=seed) for seed in (1, 1, 2))
    drawn = [[float(policy(observation, deterministic=False)[0]) for _ in range(3)] for policy in (one, same, other)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 3


def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    directory = trained(tmp_path, PPO_SMALL, CARTPOLE)
    policy = rldsl.load_policy(directory)
    for wrong in (np.zeros(3), np.zeros((2, 3)), np.zeros((1, 2, 4)), np.zeros((0, 4))):
        with pytest.raises(SpecError, match=r"should have the shape \(4,\), or \(N, ...\), got"):
            policy(wrong)
    with pytest.raises(SpecError, match="there is no checkpoint 'bst'; did you mean best"):
        rldsl.load_policy(directory, "bst")
    with pytest.raises(StoreError, match="no session in"):
        rldsl.load_policy("nothing-like-it", runs=tmp_path)
    one = session(PPO_SMALL, CARTPOLE, seed=5)
    SessionDir.create(tmp_path, one.directory, one.record(), "")
    with pytest.raises(StoreError, match="has no checkpoint yet"):
        rldsl.load_policy(tmp_path / one.directory)
