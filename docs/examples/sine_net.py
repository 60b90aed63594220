"""The implementation of the spec `Sine`, in a module of its own so that `plan` does not import PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from rldsl.extend import Arrays, FeedForward, Layout, as_float, init_linear, linear, linear_shapes


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
