"""Trunks: each member equals a plain torch module with its weights."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rldsl.nets import FeedForward, Layout, build_trunk
from rldsl.nets.conv import CHUNK, ConvTrunk
from rldsl.nets.init import Arrays, stack_members
from rldsl.nets.mlp import MLPTrunk
from rldsl.nets.recurrent import RecurrentTrunk
from rldsl.nets.trunk import Trunk
from rldsl.spec.errors import SpecError
from rldsl.spec.net import MLP, Conv, Net, Recurrent
from tests.nets.conftest import Generators

ACTIVATIONS = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
}
IMAGE = (3, 20, 22)
SMALL_CONV = Conv(layers=((4, 5, 2), (6, 3, 1)), hidden=(8,))


def members(trunk: Trunk, generators: Generators, count: int = 3) -> Tensor:
    return stack_members(trunk.layout, [trunk.init(rng) for rng in generators(*range(count))])


def random_like(flat: Tensor) -> Tensor:
    """Weights without the zeros and ones of an initialisation, which would hide mistakes."""
    return 0.3 * torch.randn(flat.shape, generator=torch.Generator().manual_seed(0))


def load(module: nn.Linear | nn.Conv2d | nn.LayerNorm, params: Mapping[str, Tensor], name: str, member: int) -> None:
    norm = isinstance(module, nn.LayerNorm)
    weight = params[f"{name}.{'scale' if norm else 'weight'}"][member]
    bias = params[f"{name}.{'shift' if norm else 'bias'}"][member]
    with torch.no_grad():
        module.weight.copy_(weight.T if isinstance(module, nn.Linear) else weight.view_as(module.weight))
        module.bias.copy_(bias.flatten())


def reference_mlp(trunk: MLPTrunk, params: Mapping[str, Tensor], member: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Flatten()]
    for name, inputs, outputs in trunk.layers:
        load(linear := nn.Linear(inputs, outputs), params, name, member)
        layers.append(linear)
        if trunk.layer_norm:
            load(norm := nn.LayerNorm(outputs), params, name, member)
            layers.append(norm)
        layers.append(ACTIVATIONS[trunk.activation]())
    return nn.Sequential(*layers)


def reference_conv(trunk: ConvTrunk, params: Mapping[str, Tensor], member: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for layer in trunk.convolutions:
        load(conv := nn.Conv2d(layer.inputs, layer.channels, layer.kernel, layer.stride), params, layer.name, member)
        layers += [conv, ACTIVATIONS[trunk.activation]()]
    dense = {name.removeprefix("dense."): value for name, value in params.items()}
    return nn.Sequential(*layers, reference_mlp(trunk.dense, dense, member))


def test_a_forward_by_hand() -> None:
    trunk = build_trunk(MLP((2,), activation="relu"), (2,))
    params = trunk.layout.views(torch.tensor([[1.0, 2, 3, 4, 0.5, -20], [0, 1, 1, 0, 0, 0]]))
    obs = torch.tensor([[[1.0, 2.0]], [[5.0, 7.0]]])
    assert trunk.forward(params, obs).tolist() == [[[7.5, 0.0]], [[7.0, 5.0]]]


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_each_member_of_an_mlp_equals_torch(activation: str, layer_norm: bool, generators: Generators) -> None:
    trunk = MLPTrunk.build(MLP((16, 9), activation=activation, layer_norm=layer_norm), (4, 2))
    params, obs = trunk.layout.views(random_like(members(trunk, generators))), torch.randn(3, 5, 4, 2)
    features = trunk.forward(params, obs)
    assert features.shape == (3, 5, trunk.features)
    for member in range(3):
        torch.testing.assert_close(features[member], reference_mlp(trunk, params, member)(obs[member]))


@pytest.mark.parametrize("images", [5, CHUNK + 3])
def test_each_member_of_a_convolution_equals_torch(images: int, generators: Generators) -> None:
    trunk = ConvTrunk.build(SMALL_CONV, IMAGE)
    params, obs = trunk.layout.views(random_like(members(trunk, generators))), torch.rand(3, images, *IMAGE)
    features = trunk.forward(params, obs)
    assert features.shape == (3, images, 8)
    for member in range(3):
        torch.testing.assert_close(features[member], reference_conv(trunk, params, member)(obs[member]))


def test_the_default_convolution_is_that_of_nature() -> None:
    trunk = ConvTrunk.build(Conv(), (4, 84, 84))
    assert trunk.dense.inputs == 3136
    assert trunk.layout.size == 4 * 32 * 64 + 32 + 32 * 64 * 16 + 64 + 64 * 64 * 9 + 64 + 3136 * 512 + 512


def test_bytes_are_fractions_of_255_and_floats_stay(generators: Generators) -> None:
    for trunk in (build_trunk(SMALL_CONV, IMAGE), build_trunk(MLP(), IMAGE)):
        params = trunk.layout.views(members(trunk, generators))
        obs = torch.randint(0, 256, (3, 2, *IMAGE), dtype=torch.uint8)
        torch.testing.assert_close(trunk.forward(params, obs), trunk.forward(params, obs.double() / 255))


def test_the_order_of_the_axes_of_an_image_does_not_matter(generators: Generators) -> None:
    first, last, gray = (build_trunk(SMALL_CONV, shape) for shape in ((1, 20, 22), (20, 22, 1), (20, 22)))
    assert first.layout == last.layout == gray.layout
    params, obs = first.layout.views(members(first, generators)), torch.rand(3, 2, 20, 22)
    expected = first.forward(params, obs.unsqueeze(2))
    torch.testing.assert_close(last.forward(params, obs.unsqueeze(-1)), expected)
    torch.testing.assert_close(gray.forward(params, obs), expected)


@pytest.mark.parametrize("shape", [(4,), (4, 30, 84), (2, 3, 4, 5)])
def test_a_convolution_refuses_what_it_cannot_read(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="shape"):
        build_trunk(Conv(), shape)


def reference_cell(trunk: RecurrentTrunk, params: Mapping[str, Tensor], member: int) -> nn.RNNCellBase:
    cell = (nn.GRUCell if trunk.cell == "gru" else nn.LSTMCell)(trunk.dense.features, trunk.size)
    with torch.no_grad():
        cell.weight_ih.copy_(params["input.weight"][member].T)
        cell.weight_hh.copy_(params["state.weight"][member].T)
        cell.bias_ih.copy_(params["input.bias"][member, 0])
        cell.bias_hh.copy_(params["state.bias"][member, 0])
    return cell


@pytest.mark.parametrize("hidden", [(), (6,)])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_each_member_of_a_recurrent_cell_equals_torch(
    cell: str, hidden: tuple[int, ...], generators: Generators
) -> None:
    trunk = RecurrentTrunk.build(Recurrent(hidden, cell=cell, size=5), (4,))
    params = trunk.layout.views(random_like(members(trunk, generators)))
    obs, state = torch.randn(3, 7, 4), torch.randn(3, 7, trunk.state_size)
    features, after = trunk.step(params, obs, state)
    dense = {name.removeprefix("dense."): value for name, value in params.items()}
    for member in range(3):
        x = reference_mlp(trunk.dense, dense, member)(obs[member])
        torch_cell = reference_cell(trunk, params, member)
        h, c = state[member, :, :5], state[member, :, 5:]
        expected = torch_cell(x, h) if cell == "gru" else torch.cat(torch_cell(x, (h, c)), -1)
        torch.testing.assert_close(after[member], expected)
        torch.testing.assert_close(features[member], expected[:, :5])


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_an_unrolled_sequence_equals_its_steps(cell: str, generators: Generators) -> None:
    trunk = build_trunk(Recurrent((6,), cell=cell, size=5), (4,))
    params = trunk.layout.views(random_like(members(trunk, generators)))
    obs, state = torch.randn(3, 6, 2, 4), torch.randn(3, 2, trunk.state_size)
    features, states = trunk.unroll(params, obs, torch.zeros(3, 6, 2, dtype=torch.bool), state)
    for t in range(6):
        expected, state = trunk.step(params, obs[:, t], state)
        torch.testing.assert_close(features[:, t], expected)
        torch.testing.assert_close(states[:, t], state)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_state_is_cut_where_an_episode_starts(cell: str, generators: Generators) -> None:
    trunk = build_trunk(Recurrent((6,), cell=cell, size=5), (4,))
    params = trunk.layout.views(random_like(members(trunk, generators)))
    obs, state = torch.randn(3, 6, 2, 4), torch.randn(3, 2, trunk.state_size)
    starts = torch.zeros(3, 6, 2, dtype=torch.bool)
    starts[1, 4, 0] = True
    features, states = trunk.unroll(params, obs, starts, state)
    uncut, _ = trunk.unroll(params, obs, torch.zeros_like(starts), state)
    fresh, final = trunk.unroll(params, obs[:, 4:], torch.zeros_like(starts[:, 4:]), torch.zeros_like(state))
    torch.testing.assert_close(features[1, 4:, 0], fresh[1, :, 0])
    torch.testing.assert_close(states[1, -1, 0], final[1, -1, 0])
    untouched = torch.ones(3, 6, 2, dtype=torch.bool)
    untouched[1, 4:, 0] = False
    torch.testing.assert_close(features[untouched], uncut[untouched])


def test_a_start_forgets_even_what_is_not_a_number(generators: Generators) -> None:
    trunk = build_trunk(Recurrent(), (4,))
    params = trunk.layout.views(members(trunk, generators))
    starts = torch.zeros(3, 4, 2, dtype=torch.bool)
    starts[:, 0] = True
    nan = torch.full((3, 2, trunk.state_size), torch.nan)
    features, _ = trunk.unroll(params, torch.randn(3, 4, 2, 4), starts, nan)
    assert features.isfinite().all()


def test_a_recurrent_trunk_does_not_answer_without_its_state(generators: Generators) -> None:
    trunk = build_trunk(Recurrent(), (4,))
    with pytest.raises(TypeError, match="unroll"):
        trunk.forward(trunk.layout.views(members(trunk, generators)), torch.zeros(3, 2, 4))


def test_without_memory_steps_and_sequences_are_forwards(generators: Generators) -> None:
    trunk = build_trunk(MLP((8,)), (4,))
    params, obs = trunk.layout.views(members(trunk, generators)), torch.randn(3, 6, 2, 4)
    state, starts = torch.zeros(3, 2, 0), torch.ones(3, 6, 2, dtype=torch.bool)
    features, states = trunk.unroll(params, obs, starts, state)
    step, after = trunk.step(params, obs[:, 2], state)
    assert trunk.state_size == 0 and states.shape == (3, 6, 2, 0) and after.shape == (3, 2, 0)
    torch.testing.assert_close(features[:, 2], step)
    torch.testing.assert_close(step, trunk.forward(params, obs[:, 2]))


@pytest.mark.parametrize("net", [MLP((8, 8), layer_norm=True), SMALL_CONV, Recurrent((8,)), Recurrent(cell="lstm")])
def test_members_do_not_touch_each_other(net: Net, generators: Generators) -> None:
    trunk = build_trunk(net, IMAGE)
    flat = members(trunk, generators)
    obs, starts = torch.rand(3, 4, 2, *IMAGE), torch.zeros(3, 4, 2, dtype=torch.bool)
    state = torch.zeros(3, 2, trunk.state_size)
    together, _ = trunk.unroll(trunk.layout.views(flat), obs, starts, state)
    for m in range(3):
        one = slice(m, m + 1)
        alone, _ = trunk.unroll(trunk.layout.views(flat[one]), obs[one], starts[one], state[one])
        torch.testing.assert_close(together[one], alone)
    flat[0] = torch.nan
    broken, _ = trunk.unroll(trunk.layout.views(flat), obs, starts, state)
    assert broken[0].isnan().all()
    assert torch.equal(broken[1:], together[1:])


class _Halves(FeedForward):
    """A user's own trunk, without parameters."""

    layout, features = Layout.of({}), 3

    @classmethod
    def build(cls, net: Net, observation_shape: tuple[int, ...]) -> "_Halves":
        return cls()

    def init(self, rng: np.random.Generator) -> Arrays:
        return {}

    def forward(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        return obs / 2


def test_a_net_of_ones_own_enters_by_its_implementation() -> None:
    class Halves(MLP, frozen=True):
        kind: str = "halves"
        implementation = f"{__name__}:_Halves"

    assert build_trunk(Halves(), (3,)).forward({}, torch.ones(1, 1, 3)).tolist() == [[[0.5, 0.5, 0.5]]]


def test_a_net_without_implementation_is_refused() -> None:
    class Nothing(Net, frozen=True):
        kind: str = "nothing"

    with pytest.raises(SpecError, match="implementation"):
        build_trunk(Nothing(), (3,))
