"""PPO: the scale of the value loss, and how many updates a budget is worth."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rldsl import MLP, PPO
from tests.agents.tiny import Endless
from tests.train.packs import session, train

SMALL = PPO(rollout=8, minibatch=16, epochs=1, lr=0.0, clip=1e6, net=MLP((8,)))


@pytest.mark.parametrize("value_target_scaling", [False, True])
def test_clipping_the_value_does_not_change_the_scale_of_its_loss(value_target_scaling: bool, tmp_path: Path) -> None:
    """With a clip range that nothing reaches, the clipped loss is the plain one."""
    losses = []
    for value_clip in (False, True):
        agent = SMALL.with_(value_clip=value_clip, value_target_scaling=value_target_scaling)
        learner = train(tmp_path / str(value_clip), session(agent, Endless(num_envs=2), frames=64)).agent
        losses.append(learner.metrics()["value_loss"])
    assert losses[0] > 0
    torch.testing.assert_close(losses[1], losses[0])
