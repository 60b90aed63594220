"""One fully connected layer over members, under a name: `<name>.weight` `[in, out]` and `<name>.bias` `[1, out]`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from rldsl.nets.init import Arrays, draw_bias, draw_weight
from rldsl.nets.layout import Shape
from rldsl.spec.net import Init


def linear(params: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """x @ weight + bias, `[M, B, in] -> [M, B, out]`."""
    return torch.baddbmm(params[f"{name}.bias"], x, params[f"{name}.weight"])


def linear_shapes(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    return {f"{name}.weight": (inputs, outputs), f"{name}.bias": (1, outputs)}


def init_linear(rng: np.random.Generator, name: str, inputs: int, outputs: int, init: Init, gain: float) -> Arrays:
    return {
        f"{name}.weight": draw_weight(rng, init, inputs, outputs, gain),
        f"{name}.bias": draw_bias(rng, init, inputs, outputs),
    }
