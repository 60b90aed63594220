"""What a network computes another way where it is compiled: the same values, the same gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from rldsl import MLP
from rldsl.envs.contract import Continuous, Discrete, Spaces
from rldsl.nets.critic import Critic, Twins
from rldsl.nets.linear import FEW_INPUTS, linear

MEMBERS, BATCH = 2, 5


def as_compiled(function: Callable[..., Tensor], *leaves: Tensor) -> list[Tensor]:
    """The value and the gradients of `function`, traced as for a compiler, whose own part is left out."""
    traced = torch.compile(function, backend="eager", fullgraph=True, dynamic=False)
    return value_and_gradients(traced, *leaves)


def value_and_gradients(function: Callable[..., Tensor], *leaves: Tensor) -> list[Tensor]:
    own = [leaf.clone().requires_grad_() for leaf in leaves]
    value = function(*own)
    return [value.detach(), *torch.autograd.grad(value.square().sum(), own)]


def noise(*shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape, np.float32))


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 3), (4, 16), (FEW_INPUTS, 3), (FEW_INPUTS + 1, 3), (16, 1)])
def test_a_layer(inputs: int, outputs: int) -> None:
    def layer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return linear({"it.weight": weight, "it.bias": bias}, "it", x)

    leaves = noise(MEMBERS, BATCH, inputs), noise(MEMBERS, inputs, outputs), noise(MEMBERS, 1, outputs)
    expected = torch.stack([x @ weight + bias for x, weight, bias in zip(*leaves, strict=True)])
    torch.testing.assert_close(layer(*leaves), expected)
    for told, plain in zip(as_compiled(layer, *leaves), value_and_gradients(layer, *leaves), strict=True):
        torch.testing.assert_close(told, plain)


@pytest.mark.parametrize("discrete", [True, False])
def test_both_critics_of_each_member(discrete: bool) -> None:
    action = Discrete(3) if discrete else Continuous(-np.ones(2), np.ones(2))
    critic = Critic.build(MLP((16, 16)), Spaces((4,), np.dtype(np.float32), action))
    twins = Twins(critic)
    seen, done = noise(MEMBERS, BATCH, 4), noise(MEMBERS, BATCH, 2)

    def judge(flat: Tensor) -> Tensor:
        params = twins.views(flat)
        return twins.values(params, seen) if discrete else twins.q(params, seen, done)

    flat = twins.init([np.random.default_rng(seed) for seed in range(MEMBERS)])
    told, plain = as_compiled(judge, flat), value_and_gradients(judge, flat)
    assert plain[0].shape[:3] == (MEMBERS, 2, BATCH)
    for one, other in zip(told, plain, strict=True):
        torch.testing.assert_close(one, other)
    alone = critic.layout.views(flat[1:, critic.layout.size :])
    second = critic.values(alone, seen[1:]) if discrete else critic.q(alone, seen[1:], done[1:])
    torch.testing.assert_close(told[0][1, 1], second[0])
