"""Changes to the graph of a step that make its compiled code faster; the results are equal up to rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

aten = torch.ops.aten

FEW_INPUTS = 8
"""Layers with at most this many inputs are faster as a sum inside the loop of their activation than as a product."""
FEW_ELEMENTS = 64
"""Tensors of at most this size are computed ahead of the loop that uses them."""
UNROLLED = 16
"""Inductor unrolls reductions of fewer elements into the loop that uses them."""


# --- As traced, before gradients are taken ----------------------------------------


def linear(bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """`torch.baddbmm`, so that the bias is added in the loop of the activation that follows.

    With few inputs the products are part of that loop as well; with a single output they are part of the loop that
    computes the input.
    """
    if weight.shape[2] == 1:
        return (x * weight.transpose(1, 2)).sum(2, keepdim=True) + bias
    if weight.shape[1] > FEW_INPUTS:
        return torch.bmm(x, weight) + bias
    y = bias
    for column, row in zip(x.unsqueeze(3).unbind(2), weight.unsqueeze(1).unbind(2), strict=True):
        y = y + column * row
    return y


def tanh(x: Tensor) -> Tensor:
    """tanh(x) = 2 sigmoid(2 x) - 1, with an absolute error below 2e-7: inductor's own tanh takes ten times as long."""
    return 2 * torch.sigmoid(2 * x) - 1


FUNCTIONS: dict[Any, Callable[..., Tensor]] = {torch.baddbmm: linear, torch.tanh: tanh}
METHODS: dict[str, Callable[..., Tensor]] = {"baddbmm": linear, "tanh": tanh}


def rewrite_layers(graph: fx.GraphModule) -> None:
    """Replaces the functions of a traced graph, gradients not taken yet, by those above."""
    for node in graph.graph.nodes:
        table: dict[Any, Callable[..., Tensor]] = {"call_function": FUNCTIONS, "call_method": METHODS}.get(node.op, {})
        if node.target in table and not node.kwargs:
            node.op, node.target = "call_function", table[node.target]
    graph.recompile()


# --- Lowered to aten operators, gradients included --------------------------------

EXPENSIVE = {
    aten.div.Tensor,
    aten.exp.default,
    aten.expm1.default,
    aten.log.default,
    aten.log1p.default,
    aten.pow.Tensor_Scalar,
    aten.pow.Scalar,
    aten.reciprocal.default,
    aten.rsqrt.default,
    aten.sqrt.default,
}


def hoist_scalars(graph: fx.GraphModule) -> None:
    """Computes expensive functions of a few elements, such as Adam's bias correction `[M]`, once.

    Inductor inlines them into the loop over all elements that they are broadcast to, and no C++ compiler can hoist them
    out of it. It does store the result of a reduction, so they become the maximum over copies of themselves.
    """
    inlined: set[fx.Node] = set()
    """Small nodes that a loop over many elements would compute."""
    for node in reversed(graph.graph.nodes):
        if not _is_small(node):
            continue
        if not any(user in inlined or _is_large(user) for user in node.users):
            continue
        if node.target in EXPENSIVE:
            _store(graph.graph, node)
        else:
            inlined.add(node)
    graph.recompile()


def _store(graph: fx.Graph, node: fx.Node) -> None:
    shape = node.meta["val"].shape
    with graph.inserting_after(node):
        wide = graph.call_function(aten.unsqueeze.default, (node, -1))
    with graph.inserting_after(wide):
        copies = graph.call_function(aten.expand.default, (wide, [*shape, UNROLLED]))
    with graph.inserting_after(copies):
        stored = graph.call_function(aten.amax.default, (copies, [-1]))
    stored.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(stored, delete_user_cb=lambda user: user is not wide)


def _is_small(node: fx.Node) -> bool:
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, Tensor):
        return False
    return value.is_floating_point() and value.numel() <= FEW_ELEMENTS


def _is_large(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return node.op == "call_function" and isinstance(value, Tensor) and value.numel() > UNROLLED * FEW_ELEMENTS
