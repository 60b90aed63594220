"""Rewritten graphs compute the same values and the same gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, fx

from rldsl.compile.rewrites import FEW_INPUTS, hoist_scalars, linear, rewrite_layers, tanh
from rldsl.maths.optimizers import adam, adam_state, bias_corrections
from rldsl.nets import linear as layer

MEMBERS, BATCH = 2, 5
aten = torch.ops.aten


def rewritten(function: Callable[..., Tensor], *leaves: Tensor) -> tuple[list[Tensor], set[Any]]:
    """The value and the gradients of a function that is traced and rewritten, and the functions in its graph."""
    targets: set[Any] = set()

    def backend(graph: fx.GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        rewrite_layers(graph)
        targets.update(node.target for node in graph.graph.nodes)
        return graph.forward

    traced = torch.compile(function, backend=backend, fullgraph=True, dynamic=False)
    return value_and_gradients(traced, *leaves), targets


def value_and_gradients(function: Callable[..., Tensor], *leaves: Tensor) -> list[Tensor]:
    own = [leaf.clone().requires_grad_() for leaf in leaves]
    value = function(*own)
    return [value.detach(), *torch.autograd.grad(value.square().sum(), own)]


def noise(*shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape, np.float32))


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 3), (4, 16), (FEW_INPUTS, 3), (FEW_INPUTS + 1, 3), (16, 1)])
def test_a_layer(inputs: int, outputs: int) -> None:
    def one_layer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return layer.linear({"it.weight": weight, "it.bias": bias}, "it", x)

    leaves = noise(MEMBERS, BATCH, inputs), noise(MEMBERS, inputs, outputs), noise(MEMBERS, 1, outputs)
    expected = torch.stack([x @ weight + bias for x, weight, bias in zip(*leaves, strict=True)])
    torch.testing.assert_close(one_layer(*leaves), expected)
    results, targets = rewritten(one_layer, *leaves)
    assert linear in targets and torch.baddbmm not in targets
    for one, other in zip(results, value_and_gradients(one_layer, *leaves), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("function", [torch.tanh, Tensor.tanh, lambda x: x.tanh()])
def test_tanh(function: Callable[..., Tensor]) -> None:
    x = torch.cat([noise(1000), 20 * noise(1000), torch.tensor([0.0, -0.0, 1e-30, 90.0, -90.0, 1e30])])
    results, targets = rewritten(function, x)
    assert tanh in targets
    torch.testing.assert_close(results[0].double(), x.double().tanh(), rtol=0, atol=2e-7)
    torch.testing.assert_close(results[1], value_and_gradients(torch.tanh, x)[1], rtol=1e-4, atol=1e-6)


def test_scaled_products_are_left_alone() -> None:
    def scaled(x: Tensor) -> Tensor:
        return torch.baddbmm(x, x, x, alpha=2.0)

    results, targets = rewritten(scaled, noise(2, 3, 3))
    assert torch.baddbmm in targets
    torch.testing.assert_close(results, value_and_gradients(scaled, noise(2, 3, 3)))


def lowered(function: Callable[..., Any], *tensors: Tensor) -> fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(torch.func.functionalize(function), tracing_mode="fake")(*tensors)


def test_bias_corrections_are_computed_once() -> None:
    def step(params: Tensor, grad: Tensor, m: Tensor, v: Tensor, count: Tensor, lr: Tensor) -> Tensor:
        corrections = bias_corrections(count.add_(1))
        adam(params, grad, {"m": m, "v": v}, lr, corrections)
        return params.sum(1)

    def arguments() -> list[Tensor]:
        params = noise(MEMBERS, 2000)
        state = adam_state(params)
        return [params, noise(MEMBERS, 2000), state["m"], state["v"], state["step"] + 3, torch.tensor([0.1, 0.2])]

    graph = lowered(step, *arguments())
    plain = graph.code
    hoist_scalars(graph)
    stored = graph.graph.find_nodes(op="call_function", target=aten.amax.default)
    assert len(stored) == 2, "one for each correction"
    assert "amax" not in plain
    ours, expected = arguments(), arguments()
    torch.testing.assert_close(graph(*ours), step(*expected), rtol=0, atol=0)
    for one, other in zip(ours, expected, strict=True):
        assert torch.equal(one, other)


def test_functions_of_many_elements_are_not_stored() -> None:
    graph = lowered(lambda x: x.exp() / x.sum().abs().clamp(min=1), noise(MEMBERS, 2000))
    hoist_scalars(graph)
    assert not graph.graph.find_nodes(op="call_function", target=aten.amax.default)
