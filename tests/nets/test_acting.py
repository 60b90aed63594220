"""Acting in numpy equals the network in torch; sampling follows the distribution."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rldsl.envs.contract import Continuous, Discrete, Spaces
from rldsl.nets import ActorCritic, Gaussian, QNetwork, greedy, gumbel_noise, make_actor, sample
from rldsl.nets.acting import NumpyActor, TorchActor
from rldsl.nets.mlp import MLPTrunk
from rldsl.spec.net import MLP, Conv, Net, Recurrent
from tests.nets.conftest import Generators

M, N = 3, 4
DISCRETE, CONTINUOUS = Discrete(5), Continuous(-np.ones(2), np.ones(2))


def spaces(action: Discrete | Continuous, shape: tuple[int, ...] = (6,)) -> Spaces:
    return Spaces(shape, np.dtype(np.float32), action)


def randomized(flat: torch.Tensor) -> torch.Tensor:
    return 0.5 * torch.randn(flat.shape, generator=torch.Generator().manual_seed(1))


def assert_equal_policies(ours: Any, expected: Any) -> None:
    assert isinstance(ours, Gaussian) == isinstance(expected, Gaussian)
    pairs = zip(ours, expected, strict=True) if isinstance(ours, Gaussian) else [(ours, expected)]
    for one, other in pairs:
        assert isinstance(one, np.ndarray)
        np.testing.assert_allclose(one, other.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "selu", "silu", "gelu"])
@pytest.mark.parametrize(("action", "log_std"), [(DISCRETE, 0.0), (CONTINUOUS, -0.3), (CONTINUOUS, None)])
def test_numpy_acts_as_torch_does(
    action: Any, log_std: float | None, activation: str, layer_norm: bool, generators: Generators
) -> None:
    net = MLP((16, 16), activation=activation, layer_norm=layer_norm)
    for shared in (False, True):
        network = ActorCritic.build(net, spaces(action), shared=shared, log_std=log_std)
        flat, obs = randomized(network.init(generators(0, 1, 2))), np.random.default_rng(0).normal(size=(M, N, 6))
        actor = make_actor(network, flat, N)
        assert isinstance(actor, NumpyActor)
        expected = network.policy(network.layout.views(flat), torch.from_numpy(obs))
        assert_equal_policies(actor(obs), expected)


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_values_of_actions_for_every_kind_of_observation(dtype: Any, dueling: bool, generators: Generators) -> None:
    network = QNetwork.build(MLP((16, 16)), spaces(DISCRETE, (2, 3)), dueling=dueling)
    flat, obs = network.init(generators(0, 1, 2)), np.arange(M * N * 6).reshape(M, N, 2, 3).astype(dtype)
    given = obs.copy()
    actor = make_actor(network, flat, N)
    assert isinstance(actor, TorchActor if dueling else NumpyActor)
    assert_equal_policies(actor(obs), network.q(network.layout.views(flat), torch.from_numpy(obs)))
    np.testing.assert_array_equal(obs, given)


@pytest.mark.parametrize(("net", "shape"), [(Conv(layers=((3, 4, 2),)), (2, 12, 12)), (MLP((4096,)), (6,))], ids=str)
def test_what_is_not_for_numpy_acts_in_torch(net: Net, shape: tuple[int, ...], generators: Generators) -> None:
    network = ActorCritic.build(net, spaces(CONTINUOUS, shape))
    flat, obs = network.init(generators(0, 1, 2)), np.random.default_rng(0).random((M, N, *shape), dtype=np.float32)
    actor = make_actor(network, flat, N)
    assert isinstance(actor, TorchActor)
    assert_equal_policies(actor(obs), network.policy(network.layout.views(flat), torch.from_numpy(obs)))


class Doubled(MLPTrunk):
    """A trunk whose forward is its own."""

    def forward(self, params: Mapping[str, torch.Tensor], obs: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(params, obs)


def test_a_trunk_with_a_forward_of_its_own_acts_by_it(generators: Generators) -> None:
    plain = ActorCritic.build(MLP((8,)), spaces(DISCRETE))
    network = replace(plain, actor=Doubled.build(MLP((8,)), (6,)))
    flat, obs = network.init(generators(0, 1, 2)), np.ones((M, N, 6), np.float32)
    expected = network.policy(network.layout.views(flat), torch.from_numpy(obs))
    assert_equal_policies(make_actor(network, flat, N)(obs), expected)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_recurrent_actor_remembers_until_an_episode_starts(cell: str, generators: Generators) -> None:
    network = ActorCritic.build(Recurrent((8,), cell=cell, size=6), spaces(DISCRETE))
    flat = randomized(network.init(generators(0, 1, 2)))
    obs = np.random.default_rng(0).normal(size=(M, 5, N, 6)).astype(np.float32)
    starts = np.random.default_rng(1).random((M, 5, N)) < 0.4
    actor = make_actor(network, flat, N)
    logits = np.stack([actor(obs[:, t], starts[:, t]) for t in range(5)], 1)
    state = torch.zeros(M, N, network.state_size)
    expected = network.unroll(network.layout.views(flat), torch.from_numpy(obs), torch.from_numpy(starts), state)
    np.testing.assert_allclose(logits, expected.policy.numpy(), rtol=2e-5, atol=2e-6)
    width = network.acting_state_size
    np.testing.assert_allclose(actor.state, expected.states[:, -1, :, :width].numpy(), rtol=2e-5, atol=2e-6)


def test_a_state_that_is_set_goes_on(generators: Generators) -> None:
    network = ActorCritic.build(Recurrent(), spaces(DISCRETE))
    flat, obs = network.init(generators(0, 1, 2)), np.ones((M, N, 6), np.float32)
    actor, other = make_actor(network, flat, N), make_actor(network, flat, N)
    actor(obs)
    other.state = actor.state.copy()
    np.testing.assert_array_equal(actor(obs), other(obs))


@pytest.mark.parametrize("net", [MLP((8,)), Recurrent((8,))], ids=str)
def test_an_actor_sees_new_weights_when_it_is_refreshed(net: Net, generators: Generators) -> None:
    network = ActorCritic.build(net, spaces(DISCRETE))
    first, second, obs = network.init(generators(0, 1)), network.init(generators(2, 3)), np.ones((2, N, 6), np.float32)
    actor = make_actor(network, first, N)
    before = actor(obs)
    actor.refresh(second.requires_grad_())
    actor.state = np.zeros_like(actor.state)
    np.testing.assert_array_equal(actor(obs), make_actor(network, second, N)(obs))
    assert not np.array_equal(actor(obs), before)


def test_numpy_reads_the_weights_where_they_are(generators: Generators) -> None:
    network = ActorCritic.build(MLP((8,)), spaces(DISCRETE))
    flat, obs = network.init(generators(0)), np.ones((1, N, 6), np.float32)
    actor = make_actor(network, flat, N)
    flat.zero_()
    assert not actor(obs).any()


def test_a_broken_member_does_not_touch_the_actions_of_others(generators: Generators) -> None:
    for net in (MLP((8,)), Recurrent((8,))):
        network = ActorCritic.build(net, spaces(DISCRETE))
        flat, obs = network.init(generators(0, 1)), np.ones((2, N, 6), np.float32)
        whole = make_actor(network, flat, N)(obs)
        flat[0] = torch.nan
        broken = make_actor(network, flat, N)(obs)
        assert np.isnan(broken[0]).all()
        np.testing.assert_array_equal(broken[1], whole[1])


def test_samples_by_hand() -> None:
    logits = np.log([[[0.75, 0.25]]])
    # Gumbel noise of u = .5, .5 is equal; of .1, .9 it is -ln(-ln .1) = -.834 and 2.250: ln .75 - .834 < ln .25 + 2.250
    assert sample(logits, gumbel_noise(np.array([[[0.5, 0.5]]]))).tolist() == [[0]]
    assert sample(logits, gumbel_noise(np.array([[[0.1, 0.9]]]))).tolist() == [[1]]
    gaussian = Gaussian(np.array([[[1.0, 0.0]]]), np.log([[[2.0, 1.0]]]))
    np.testing.assert_allclose(sample(gaussian, np.array([[[1.0, -1.0]]])), [[[3.0, -1.0]]])  # 1 + 2 * 1, 0 + 1 * -1


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_invalid_actions_are_never_sampled(edge: float) -> None:
    logits = np.array([[[-np.inf, 0.0, 0.0]]])
    assert sample(logits, gumbel_noise(np.array([[[edge, 0.5, 0.4]]]))).tolist() == [[1]]


def test_sampled_frequencies_are_the_probabilities() -> None:
    logits = np.log(np.array([0.1, 0.2, 0.7], np.float32))
    noise = gumbel_noise(np.random.default_rng(0).random((20_000, 3), dtype=np.float32))
    frequencies = np.bincount(sample(logits, noise)) / 20_000
    np.testing.assert_allclose(frequencies, [0.1, 0.2, 0.7], atol=0.015)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_is_finite_at_the_ends_of_the_uniform(dtype: Any) -> None:
    uniform = np.array([0.0, np.nextafter(1, 0, dtype=dtype), 1.0], dtype)
    noise = gumbel_noise(uniform)
    assert np.isfinite(noise).all() and noise.dtype == dtype
    assert uniform[0] == 0.0


def test_an_action_that_is_not_allowed_is_never_taken() -> None:
    logits = np.array([[0.0, -np.inf]], np.float32)
    assert not sample(logits, gumbel_noise(np.random.default_rng(0).random((1000, 2)))).any()


def test_greedy_takes_the_mode() -> None:
    assert greedy(np.array([[1.0, 3.0, 2.0]])).tolist() == [1]
    mean = np.array([[0.2, -0.4]])
    assert greedy(Gaussian(mean, np.zeros((1, 2)))) is mean
