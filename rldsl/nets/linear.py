"""One fully connected layer over members, under a name: `<name>.weight` `[in, out]` and `<name>.bias` `[1, out]`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from rldsl.nets.init import Arrays, draw_bias, draw_weight
from rldsl.nets.layout import Shape
from rldsl.spec.net import Init

FEW_INPUTS = 8
"""Up to so many, a sum of products inside the loop of the activation is quicker than a matrix product before it."""


def linear(params: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """x @ weight + bias, `[M, B, in] -> [M, B, out]`.

    Compiled, the bias joins the activation that follows, and so do the products of few inputs; a single output is a sum
    in the loop that makes its input.
    """
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if not torch.compiler.is_compiling():
        return torch.baddbmm(bias, x, weight)
    if weight.shape[2] == 1:
        return (x * weight.transpose(1, 2)).sum(2, keepdim=True) + bias
    if weight.shape[1] > FEW_INPUTS:
        return torch.bmm(x, weight) + bias
    y = bias
    for column, row in zip(x.unsqueeze(3).unbind(2), weight.unsqueeze(1).unbind(2), strict=True):
        y = y + column * row
    return y


def linear_shapes(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    return {f"{name}.weight": (inputs, outputs), f"{name}.bias": (1, outputs)}


def init_linear(rng: np.random.Generator, name: str, inputs: int, outputs: int, init: Init, gain: float) -> Arrays:
    return {
        f"{name}.weight": draw_weight(rng, init, inputs, outputs, gain),
        f"{name}.bias": draw_bias(rng, init, inputs, outputs),
    }
