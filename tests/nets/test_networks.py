"""Whole networks: shapes of every combination, gradients, compilation, and what is shared."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rldsl.envs.contract import Continuous, Discrete, Spaces
from rldsl.maths.optimizers import adam, adam_state, bias_corrections, clip_by_norm
from rldsl.nets import ActorCritic, Gaussian, Network, QNetwork
from rldsl.nets.mlp import MLPTrunk
from rldsl.spec.errors import SpecError
from rldsl.spec.net import MLP, Conv, Net, Recurrent
from tests.nets.conftest import Generators

M, T, N = 2, 3, 4
IMAGE = (2, 12, 12)
DISCRETE, CONTINUOUS = Discrete(5), Continuous(-np.ones(3), np.ones(3))
SMALL_CONV = Conv(layers=((3, 4, 2),), hidden=(7,))
FEED_FORWARD = [MLP(()), MLP((8, 6), layer_norm=True), SMALL_CONV, SMALL_CONV.with_(hidden=())]
RECURRENT = [Recurrent((), size=6), Recurrent((8,), cell="lstm", size=6)]


def spaces(action: Discrete | Continuous, shape: tuple[int, ...] = IMAGE) -> Spaces:
    return Spaces(shape, np.dtype(np.float32), action)


def params_of(network: Network, generators: Generators) -> dict[str, Tensor]:
    return network.layout.views(network.init(generators(*range(M))))


@pytest.mark.parametrize("action", [DISCRETE, CONTINUOUS], ids=["discrete", "continuous"])
@pytest.mark.parametrize("log_std", [0.5, None])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("net", FEED_FORWARD + RECURRENT, ids=str)
def test_shapes(net: Net, shared: bool, log_std: float | None, action: Any, generators: Generators) -> None:
    network = ActorCritic.build(net, spaces(action), shared=shared, log_std=log_std)
    state = torch.zeros(M, N, network.state_size)
    obs, starts = torch.rand(M, T, N, *IMAGE), torch.zeros(M, T, N, dtype=torch.bool)
    policy, value, states = network.unroll(params_of(network, generators), obs, starts, state)
    assert value.shape == (M, T, N) and states.shape == (M, T, N, network.state_size)
    if action is DISCRETE:
        assert policy.shape == (M, T, N, 5)
    else:
        assert policy.mean.shape == (M, T, N, 3)
        assert policy.log_std.shape == ((M, T, N, 3) if log_std is None else (M, 1, 1, 3))


@pytest.mark.parametrize("action", [DISCRETE, CONTINUOUS], ids=["discrete", "continuous"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("net", FEED_FORWARD, ids=str)
def test_every_way_to_ask_gets_the_same_answer(net: Net, shared: bool, action: Any, generators: Generators) -> None:
    network = ActorCritic.build(net, spaces(action), shared=shared)
    params, obs = params_of(network, generators), torch.rand(M, N, *IMAGE)
    policy, value = network.policy_and_value(params, obs)
    unrolled = network.unroll(params, obs.unsqueeze(1), torch.zeros(M, 1, N, dtype=torch.bool), torch.zeros(M, N, 0))
    acted, _ = network.act(params, obs, torch.zeros(M, N, 0))
    assert value.shape == (M, N)
    torch.testing.assert_close(value, network.value(params, obs))
    torch.testing.assert_close(value, unrolled.value[:, 0])
    for other in (network.policy(params, obs), acted, _first_step(unrolled.policy)):
        torch.testing.assert_close(other, policy)


def _first_step(policy: Any) -> Any:
    return Gaussian(policy.mean[:, 0], policy.log_std[:, 0]) if isinstance(policy, Gaussian) else policy[:, 0]


def test_a_shared_trunk_is_passed_once_and_has_one_set_of_parameters() -> None:
    network = ActorCritic.build(MLP((8,)), spaces(DISCRETE, (4,)), shared=True)
    names = {"trunk.0.weight", "trunk.0.bias", "actor.head.weight", "actor.head.bias"}
    assert set(network.layout.names) == names | {"critic.head.weight", "critic.head.bias"}
    params = network.layout.views(torch.zeros(1, network.layout.size))
    with patch.object(MLPTrunk, "forward", autospec=True, side_effect=MLPTrunk.forward) as forward:
        network.policy_and_value(params, torch.zeros(1, 2, 4))
    assert forward.call_count == 1


def test_actor_and_critic_lie_side_by_side_and_may_differ_in_size() -> None:
    network = ActorCritic.build(MLP((8,)), spaces(CONTINUOUS, (4,)), critic_net=MLP((16, 16)))
    actor, critic = 4 * 8 + 8 + 8 * 3 + 3 + 3, 4 * 16 + 16 + 16 * 16 + 16 + 16 + 1
    assert network.layout.slice_of("actor.") == slice(0, actor)
    assert network.layout.slice_of("critic.") == slice(actor, actor + critic)


def test_the_log_deviation_starts_where_it_is_told_or_stays_within_bounds(generators: Generators) -> None:
    network = ActorCritic.build(MLP(), spaces(CONTINUOUS, (4,)), log_std=-0.7)
    assert network.policy(params_of(network, generators), torch.zeros(M, 1, 4)).log_std.unique() == np.float32(-0.7)
    observing = ActorCritic.build(MLP(), spaces(CONTINUOUS, (4,)), log_std=None)
    wild = 50 * torch.randn(M, observing.layout.size)
    log_std = observing.policy(observing.layout.views(wild), torch.randn(M, 64, 4)).log_std
    assert log_std.min() == -5 and log_std.max() == 2


def test_states_of_separate_recurrent_trunks_are_kept_apart(generators: Generators) -> None:
    network = ActorCritic.build(Recurrent(size=6), spaces(DISCRETE, (4,)), critic_net=Recurrent(cell="lstm", size=5))
    assert (network.acting_state_size, network.state_size) == (6, 16)
    params, obs = params_of(network, generators), torch.randn(M, T, N, 4)
    starts, state = torch.zeros(M, T, N, dtype=torch.bool), torch.randn(M, N, 16)
    policy, _, states = network.unroll(params, obs, starts, state)
    acting = state[..., :6]
    for t in range(T):
        logits, acting = network.act(params, obs[:, t], acting)
        torch.testing.assert_close(logits, policy[:, t])
        torch.testing.assert_close(acting, states[:, t, :, :6])
    second = network.unroll(params, obs[:, 2:], starts[:, 2:], states[:, 1])
    torch.testing.assert_close(second.states[:, -1], states[:, -1])


def test_gradients_through_the_flat_row_are_those_of_torch(generators: Generators) -> None:
    network = ActorCritic.build(MLP((8,)), spaces(DISCRETE, (4,)))
    flat, obs = network.init(generators(0, 1)), torch.randn(M, 6, 4)
    grad = torch.func.grad(lambda row: network.value(network.layout.views(row), obs).square().sum())(flat)
    params, grads = network.layout.views(flat), network.layout.views(grad)
    assert not grad[:, network.layout.slice_of("actor.")].any()
    for member in range(M):
        reference = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        for layer, name in ((reference[0], "critic.trunk.0"), (reference[2], "critic.head")):
            layer.weight.data, layer.bias.data = params[f"{name}.weight"][member].T, params[f"{name}.bias"][member, 0]
        reference(obs[member]).square().sum().backward()
        torch.testing.assert_close(grads["critic.trunk.0.weight"][member].T, reference[0].weight.grad)
        torch.testing.assert_close(grads["critic.head.bias"][member, 0], reference[2].bias.grad)


def test_a_broken_member_leaves_the_gradients_of_others_alone(generators: Generators) -> None:
    network = ActorCritic.build(MLP((8,)), spaces(DISCRETE, (4,)), shared=True)
    flat, obs = network.init(generators(0, 1)), torch.randn(M, 6, 4)

    def gradient(row: Tensor) -> Tensor:
        return torch.func.grad(lambda flat: network.value(network.layout.views(flat), obs).sum())(row)

    whole = gradient(flat)
    flat[0] = torch.nan
    broken = gradient(flat)
    assert broken[0].isnan().any() and torch.equal(broken[1], whole[1])


@pytest.mark.parametrize("net", [MLP((8,), layer_norm=True), SMALL_CONV, *RECURRENT], ids=str)
def test_a_whole_update_of_a_fresh_network_compiles_into_one_graph(net: Net) -> None:
    network = ActorCritic.build(net, spaces(CONTINUOUS), log_std=None)
    state = torch.zeros(M, N, network.state_size)
    obs, starts = torch.rand(M, T, N, *IMAGE), torch.zeros(M, T, N, dtype=torch.bool)

    def loss(flat: Tensor) -> Tensor:
        policy, value, _ = network.unroll(network.layout.views(flat), obs, starts, state)
        return policy.mean.square().sum() + policy.log_std.sum() + value.square().sum()

    def update(flat: Tensor, moments: dict[str, Tensor]) -> None:
        grads, _ = clip_by_norm({"": torch.func.grad(loss)(flat)}, torch.ones(M))
        adam(flat, grads[""], moments, torch.full((M,), 1e-2), bias_corrections(moments["step"].add_(1)))

    before = 0.1 * torch.randn(M, network.layout.size)
    eager, compiled = before.clone(), before.clone()
    torch.compile(update, backend="eager", fullgraph=True, dynamic=False)(compiled, adam_state(compiled))
    update(eager, adam_state(eager))
    torch.testing.assert_close(compiled, eager)
    assert not torch.equal(eager, before)


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("net", FEED_FORWARD + RECURRENT, ids=str)
def test_values_of_actions(net: Net, dueling: bool, generators: Generators) -> None:
    network = QNetwork.build(net, spaces(DISCRETE), dueling=dueling)
    params, state = params_of(network, generators), torch.zeros(M, N, network.state_size)
    obs, starts = torch.rand(M, T, N, *IMAGE), torch.zeros(M, T, N, dtype=torch.bool)
    q, states = network.unroll(params, obs, starts, state)
    assert q.shape == (M, T, N, 5) and states.shape == (M, T, N, network.state_size)
    acted, _ = network.act(params, obs[:, 0], state)
    torch.testing.assert_close(acted, q[:, 0])
    if net in FEED_FORWARD:
        torch.testing.assert_close(network.q(params, obs[:, 0]), q[:, 0])


def test_dueling_by_hand() -> None:
    network = QNetwork.build(MLP((3, 1), activation="relu"), spaces(Discrete(2), (3,)), dueling=True)
    assert network.trunk.features == 3
    params = network.layout.views(torch.zeros(1, network.layout.size))
    params["trunk.0.weight"][0] = torch.eye(3)
    params["value.hidden.0.weight"][0] = torch.tensor([[1.0], [0.0], [0.0]])
    params["value.head.weight"][0] = 10.0
    params["advantage.hidden.0.weight"][0] = torch.tensor([[0.0], [1.0], [0.0]])
    params["advantage.head.weight"][0] = torch.tensor([[1.0, 3.0]])
    q = network.q(params, torch.tensor([[[2.0, 5.0, 9.0]]]))
    assert q.tolist() == [[[20.0 + 5 - 10, 20.0 + 15 - 10]]]


def test_continuous_actions_have_no_list_of_values() -> None:
    with pytest.raises(TypeError, match="discrete"):
        QNetwork.build(MLP(), spaces(CONTINUOUS))


CRITIC_NETS = [MLP((8,)), Recurrent((), size=6)]


@pytest.mark.parametrize("critic_net", CRITIC_NETS, ids=str)
@pytest.mark.parametrize("net", [SMALL_CONV, Recurrent((8,), cell="lstm", size=6)], ids=str)
def test_a_critic_that_sees_more_tells_the_policy_nothing(net: Net, critic_net: Net, generators: Generators) -> None:
    network = ActorCritic.build(net, replace(spaces(DISCRETE), critic_shape=(5,)), critic_net=critic_net)
    params, state = params_of(network, generators), torch.rand(M, N, network.state_size)
    obs, own, starts = torch.rand(M, T, N, *IMAGE), torch.rand(M, T, N, 5), torch.zeros(M, T, N, dtype=torch.bool)
    unrolled = network.unroll(params, obs, starts, state, own)
    other_value = network.unroll(params, obs, starts, state, own + 1)
    other_policy = network.unroll(params, obs + 1, starts, state, own)
    assert torch.equal(other_value.policy, unrolled.policy) and not torch.allclose(other_value.value, unrolled.value)
    assert torch.equal(other_policy.value, unrolled.value) and not torch.allclose(other_policy.policy, unrolled.policy)
    assert torch.equal(network.unroll_value(params, own, starts, state), unrolled.value)


def test_transitions_of_a_critic_that_sees_more(generators: Generators) -> None:
    network = ActorCritic.build(MLP((8,)), replace(spaces(DISCRETE, (4,)), critic_shape=(5,)))
    params, obs, own = params_of(network, generators), torch.rand(M, N, 4), torch.rand(M, N, 5)
    policy, value = network.policy_and_value(params, obs, own)
    assert torch.equal(policy, network.policy(params, obs)) and torch.equal(value, network.value(params, own))


@pytest.mark.parametrize("shared", [False, True])
def test_the_value_alone_is_the_value_of_both(shared: bool, generators: Generators) -> None:
    network = ActorCritic.build(Recurrent((8,), size=6), spaces(DISCRETE, (4,)), shared=shared)
    params, state = params_of(network, generators), torch.rand(M, N, network.state_size)
    obs, starts = torch.rand(M, T, N, 4), torch.rand(M, T, N) < 0.3
    expected = network.unroll(params, obs, starts, state).value
    assert torch.equal(network.unroll_value(params, obs, starts, state), expected)


def test_a_shared_trunk_cannot_see_two_things() -> None:
    with pytest.raises(SpecError, match=r"^shared=True is for a critic that sees what the policy sees, and here it"):
        ActorCritic.build(MLP(), replace(spaces(DISCRETE, (4,)), critic_shape=(5,)), shared=True)
