"""What the spec `Sine` stands for; imported only where something trains, so that plans need no PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from rldsl.nets.init import Arrays
from rldsl.nets.layout import Layout
from rldsl.nets.linear import init_linear, linear, linear_shapes
from rldsl.nets.trunk import FeedForward, as_float


@dataclass(frozen=True)
class SineTrunk(FeedForward):
    """From observations `[M, B, ...]` to features `[M, B, units]`, for all members at once."""

    inputs: int
    units: int

    @classmethod
    def build(cls, net: Any, observation_shape: tuple[int, ...]) -> Self:
        return cls(prod(observation_shape), net.units)

    @property
    def layout(self) -> Layout:
        return Layout.of(linear_shapes("0", self.inputs, self.units))

    @property
    def features(self) -> int:
        return self.units

    def init(self, rng: np.random.Generator) -> Arrays:
        return init_linear(rng, "0", self.inputs, self.units, "orthogonal", gain=2.0)

    def forward(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        return torch.sin(linear(params, "0", as_float(obs).flatten(2)))
