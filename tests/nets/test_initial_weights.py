"""Initial weights: their distributions, and that a member's are its own."""

import math

import numpy as np
import pytest
import torch

from rldsl.envs.contract import Discrete, Spaces
from rldsl.nets import ActorCritic
from rldsl.nets.init import draw_bias, draw_weight, hidden_gain
from rldsl.spec.net import MLP, Conv, Init, Net, Recurrent
from tests.nets.conftest import Generators


@pytest.mark.parametrize("shape", [(64, 8), (8, 64), (16, 16)])
def test_orthogonal_rows_or_columns_have_the_length_of_the_gain(shape: tuple[int, int]) -> None:
    weight = draw_weight(np.random.default_rng(0), "orthogonal", *shape, gain=1.5).astype(np.float64)
    gram = weight.T @ weight if shape[0] >= shape[1] else weight @ weight.T
    np.testing.assert_allclose(gram, 2.25 * np.eye(min(shape)), atol=1e-6)


@pytest.mark.parametrize(
    ("init", "deviation"),
    [
        ("orthogonal", 2 / math.sqrt(400)),
        ("xavier", 2 * math.sqrt(2 / 700)),
        ("he", 2 / math.sqrt(300)),
        ("torch", 1 / math.sqrt(3 * 300)),
    ],
)
def test_deviations(init: Init, deviation: float) -> None:
    weight = draw_weight(np.random.default_rng(0), init, 300, 400, gain=2.0)
    assert weight.shape == (300, 400) and weight.dtype == np.float32
    assert abs(weight.mean()) < 0.02 * deviation
    assert weight.std() == pytest.approx(deviation, rel=0.02)


def test_torch_initialises_as_torch_does() -> None:
    ours, theirs = draw_weight(np.random.default_rng(0), "torch", 50, 4000, 1.0), torch.nn.Linear(50, 4000)
    assert abs(ours).max() == pytest.approx(theirs.weight.abs().max().item(), rel=1e-3)
    bias = draw_bias(np.random.default_rng(0), "torch", 50, 4000)
    assert abs(bias).max() == pytest.approx(theirs.bias.abs().max().item(), rel=1e-2)
    assert not draw_bias(np.random.default_rng(0), "he", 50, 4000).any()


def test_gains_of_hidden_layers() -> None:
    assert hidden_gain("orthogonal", "tanh") == math.sqrt(2)
    for activation in ("tanh", "relu", "selu"):
        assert hidden_gain("xavier", activation) == pytest.approx(torch.nn.init.calculate_gain(activation))


@pytest.mark.parametrize("net", [MLP(), MLP(init="torch"), Conv(hidden=(8,)), Recurrent(init="he"), Recurrent()])
def test_a_member_starts_in_a_pack_as_it_starts_alone(net: Net, generators: Generators) -> None:
    spaces = Spaces((1, 40, 40), np.dtype(np.float32), Discrete(3))
    network = ActorCritic.build(net, spaces)
    together = network.init(generators(7, 8, 9))
    assert together.shape == (3, network.layout.size) and together.dtype == torch.float32
    for row, seed in zip(together, (7, 8, 9), strict=True):
        assert torch.equal(network.init(generators(seed))[0], row)
    assert not torch.equal(together[0], together[1])


def test_the_heads_of_ppo_start_small_and_at_one(generators: Generators) -> None:
    spaces = Spaces((5,), np.dtype(np.float32), Discrete(3))
    network = ActorCritic.build(MLP(), spaces)
    params = network.layout.views(network.init(generators(0)))
    assert torch.linalg.matrix_norm(params["actor.head.weight"][0], 2).item() == pytest.approx(0.01, rel=1e-4)
    assert torch.linalg.matrix_norm(params["critic.head.weight"][0], 2).item() == pytest.approx(1.0, rel=1e-4)
    assert torch.linalg.matrix_norm(params["actor.trunk.1.weight"][0], 2).item() == pytest.approx(2**0.5, rel=1e-4)
