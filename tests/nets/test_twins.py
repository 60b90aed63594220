"""The two critics of each member: batched or separate, with the same values and gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from rldsl import MLP
from rldsl.envs.contract import Continuous, Discrete, Spaces
from rldsl.nets.critic import Critic, Twins

MEMBERS, BATCH = 2, 5


def value_and_gradient(function: Callable[[Tensor], Tensor], flat: Tensor) -> list[Tensor]:
    leaf = flat.clone().requires_grad_()
    value = function(leaf)
    return [value.detach(), *torch.autograd.grad(value.square().sum(), leaf)]


def noise(*shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape, np.float32))


@pytest.mark.parametrize("discrete", [True, False])
def test_separate_critics_equal_batched_ones(discrete: bool) -> None:
    action = Discrete(3) if discrete else Continuous(-np.ones(2), np.ones(2))
    critic = Critic.build(MLP((16, 16)), Spaces((4,), np.dtype(np.float32), action))
    obs, actions = noise(MEMBERS, BATCH, 4), noise(MEMBERS, BATCH, 2)

    def values(twins: Twins) -> Callable[[Tensor], Tensor]:
        def of(flat: Tensor) -> Tensor:
            params = twins.views(flat)
            return twins.values(params, obs) if discrete else twins.q(params, obs, actions)

        return of

    flat = Twins(critic).init([np.random.default_rng(seed) for seed in range(MEMBERS)])
    separate, batched = (value_and_gradient(values(Twins(critic, separate)), flat) for separate in (True, False))
    assert batched[0].shape[:3] == (MEMBERS, 2, BATCH)
    torch.testing.assert_close(separate, batched)
    alone = critic.layout.views(flat[1:, critic.layout.size :])
    second = critic.values(alone, obs[1:]) if discrete else critic.q(alone, obs[1:], actions[1:])
    torch.testing.assert_close(batched[0][1, 1], second[0])
