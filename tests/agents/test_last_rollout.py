"""The last complete rollout of a budget is learned from; an incomplete one is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rldsl import A2C, MLP, PPO, Agent, Reinforce, Sarsa
from rldsl.maths.streams import stream
from tests.agents.tiny import Endless
from tests.train.packs import session, train

NET = MLP((8,))
AGENTS = {
    "reinforce": Reinforce(rollout=8, net=NET),
    "a2c": A2C(rollout=8, net=NET),
    "ppo": PPO(rollout=8, minibatch=16, epochs=1, net=NET),
    "sarsa": Sarsa(rollout=8, net=NET),
}
BATCH = 16


def parameters_after(agent: Agent, frames: int, path: Path) -> torch.Tensor:
    return train(path / str(frames), session(agent, Endless(num_envs=2), frames=frames)).agent.update.flat


@pytest.mark.parametrize("name", AGENTS)
def test_a_budget_of_one_batch_is_one_update(name: str, tmp_path: Path) -> None:
    learner = train(tmp_path, session(AGENTS[name], Endless(num_envs=2), frames=BATCH)).agent
    initial = learner.network.init([stream(0, "init")])
    assert not torch.equal(learner.update.flat, initial)
    assert (learner.metrics()["value_loss"] > 0).all()


@pytest.mark.parametrize("name", AGENTS)
def test_what_is_left_of_a_budget_after_the_last_batch_changes_nothing(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name].with_(epsilon=0.1) if name == "sarsa" else AGENTS[name]
    agent = agent.with_(lr=1e-3)  # no schedule, which would depend on the budget
    whole, more = (parameters_after(agent, frames, tmp_path) for frames in (2 * BATCH, 2 * BATCH + 6))
    torch.testing.assert_close(more, whole, rtol=0, atol=0)
