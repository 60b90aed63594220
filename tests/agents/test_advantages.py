"""What a rollout is worth: advantages and targets of a real one, with cut and ended episodes, against plain loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldsl import A2C, MLP, PPO, Environment
from tests.agents.tiny import Chain, Endless
from tests.train.packs import session, train

NET, GAMMA, LAM = MLP((8,)), 0.9, 0.8


def evaluated(agent: Any, env: Environment, path: Path) -> dict[str, np.ndarray]:
    """The last rollout of a short session as the agent sees it, `[T, N]` each."""
    learner = train(path, session(agent, env, frames=64)).agent
    return {name: tensor[0].numpy() for name, tensor in learner.compute_targets(learner.rollout).items()}


@pytest.mark.parametrize("env", [Endless(num_envs=2), Endless(num_envs=2, ends="terminated"), Chain(num_envs=2)])
@pytest.mark.parametrize("kind", [PPO, A2C])
def test_generalised_advantages(kind: type, env: Environment, tmp_path: Path) -> None:
    options = {"minibatch": 16} if kind is PPO else {}
    data = evaluated(kind(rollout=8, net=NET, gamma=GAMMA, lam=LAM, **options), env, tmp_path)
    expected, following = np.zeros_like(data["reward"]), 0.0
    for t in reversed(range(8)):
        after = np.where(data["terminated"][t], 0.0, data["next_value"][t])
        delta = data["reward"][t] + GAMMA * after - data["value"][t]
        expected[t] = following = delta + GAMMA * LAM * np.where(data["ended"][t], 0.0, following)
    np.testing.assert_allclose(data["advantage"], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(data["target"], expected + data["value"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 50])
def test_n_step_advantages(n: int, tmp_path: Path) -> None:
    data = evaluated(A2C(rollout=8, net=NET, gamma=GAMMA, n_step=n), Endless(num_envs=2), tmp_path)
    for t in range(8):
        for env in range(2):
            total, at = 0.0, t
            while True:
                total += GAMMA ** (at - t) * data["reward"][at, env]
                if data["ended"][at, env] or at - t == n - 1 or at == 7:
                    break
                at += 1
            if not data["terminated"][at, env]:
                total += GAMMA ** (at - t + 1) * data["next_value"][at, env]
            assert data["target"][t, env] == pytest.approx(total, rel=1e-4, abs=1e-5)
            assert data["advantage"][t, env] == pytest.approx(total - data["value"][t, env], rel=1e-4, abs=1e-5)
