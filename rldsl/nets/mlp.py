"""Fully connected trunk (MLP)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Self

import numpy as np
from torch import Tensor
from torch.nn.functional import layer_norm

from rldsl.nets.activations import ACTIVATIONS
from rldsl.nets.init import Arrays, hidden_gain
from rldsl.nets.layout import Layout, Shape
from rldsl.nets.linear import init_linear, linear, linear_shapes
from rldsl.nets.trunk import FeedForward, as_float
from rldsl.spec.net import MLP, Activation, Init

LAYER_NORM_EPS = 1e-5


@dataclass(frozen=True)
class MLPTrunk(FeedForward):
    """Layers named "0", "1", ...; observations are flattened."""

    inputs: int
    hidden: tuple[int, ...]
    activation: Activation
    initial: Init
    layer_norm: bool = False
    layers: tuple[tuple[str, int, int], ...] = field(init=False, repr=False, compare=False)
    """Name, inputs and outputs of each layer."""

    def __post_init__(self) -> None:
        pairs = pairwise((self.inputs, *self.hidden))
        object.__setattr__(self, "layers", tuple((str(index), *pair) for index, pair in enumerate(pairs)))

    @classmethod
    def build(cls, net: MLP, observation_shape: Shape) -> Self:
        return cls(prod(observation_shape), net.hidden, net.activation, net.init, net.layer_norm)

    @cached_property
    def layout(self) -> Layout:
        shapes: dict[str, Shape] = {}
        for name, inputs, outputs in self.layers:
            shapes |= linear_shapes(name, inputs, outputs)
            if self.layer_norm:
                shapes |= {f"{name}.scale": (1, outputs), f"{name}.shift": (1, outputs)}
        return Layout.of(shapes)

    @property
    def features(self) -> int:
        return self.hidden[-1] if self.hidden else self.inputs

    def init(self, rng: np.random.Generator) -> Arrays:
        arrays: Arrays = {}
        gain = hidden_gain(self.initial, self.activation)
        for name, inputs, outputs in self.layers:
            arrays |= init_linear(rng, name, inputs, outputs, self.initial, gain)
            if self.layer_norm:
                arrays[f"{name}.scale"] = np.ones((1, outputs), np.float32)
                arrays[f"{name}.shift"] = np.zeros((1, outputs), np.float32)
        return arrays

    def forward(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        x = as_float(obs).flatten(2)
        activate = ACTIVATIONS[self.activation]
        for name, _, outputs in self.layers:
            x = linear(params, name, x)
            if self.layer_norm:
                x = params[f"{name}.shift"] + layer_norm(x, (outputs,), eps=LAYER_NORM_EPS) * params[f"{name}.scale"]
            x = activate(x)
        return x
