"""Recurrent trunk: fully connected layers followed by a GRU or LSTM whose state is reset between episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from rldsl.nets.init import Arrays, draw_weight
from rldsl.nets.layout import Layout, Shape, prefixed, scope
from rldsl.nets.linear import linear, linear_shapes
from rldsl.nets.mlp import MLPTrunk
from rldsl.nets.trunk import Trunk
from rldsl.spec.net import Init, Recurrent


@dataclass(frozen=True)
class RecurrentTrunk(Trunk):
    """`dense`, then a cell of `size` units with the equations of `torch.nn.GRUCell` or `LSTMCell`.

    `input` and `state` are the two linear layers of the cell, with the gates in torch's order. The state is h, or h and
    c concatenated; the features are h.
    """

    dense: MLPTrunk
    cell: Literal["gru", "lstm"]
    size: int
    initial: Init

    @classmethod
    def build(cls, net: Recurrent, observation_shape: Shape) -> Self:
        dense = MLPTrunk(math.prod(observation_shape), net.hidden, net.activation, net.init)
        return cls(dense, net.cell, net.size, net.init)

    @property
    def gates(self) -> int:
        return self.size * (3 if self.cell == "gru" else 4)

    @cached_property
    def layout(self) -> Layout:
        cell = linear_shapes("input", self.dense.features, self.gates) | linear_shapes("state", self.size, self.gates)
        return Layout.join({"dense.": self.dense.layout, "": Layout.of(cell)})

    @property
    def features(self) -> int:
        return self.size

    @property
    def state_size(self) -> int:
        return self.size * (1 if self.cell == "gru" else 2)

    def init(self, rng: np.random.Generator) -> Arrays:
        dense = prefixed("dense.", self.dense.init(rng))
        return dense | self._init_cell(rng, "input", self.dense.features) | self._init_cell(rng, "state", self.size)

    def _init_cell(self, rng: np.random.Generator, name: str, inputs: int) -> Arrays:
        """With gain 1, or U(-b, b) with b = 1 / sqrt(size) for `init="torch"`, as torch's cells do."""
        if self.initial == "torch":
            bound = 1 / math.sqrt(self.size)
            shapes = linear_shapes(name, inputs, self.gates)
            return {key: rng.uniform(-bound, bound, shape).astype(np.float32) for key, shape in shapes.items()}
        weight = draw_weight(rng, self.initial, inputs, self.gates, gain=1.0)
        return {f"{name}.weight": weight, f"{name}.bias": np.zeros((1, self.gates), np.float32)}

    def forward(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        raise TypeError("a recurrent trunk needs its state: use step or unroll")

    def step(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self._next_state(params, self._inputs(params, obs), state)
        return state[..., : self.size], state

    def unroll(self, params: Mapping[str, Tensor], obs: Tensor, starts: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        inputs = torch.unflatten(self._inputs(params, obs.flatten(1, 2)), 1, obs.shape[1:3])
        states = []
        for x, start in zip(inputs.unbind(1), starts.unbind(1), strict=True):
            state = self._next_state(params, x, state.masked_fill(start.unsqueeze(-1), 0.0))
            states.append(state)
        all_states = torch.stack(states, 1)
        return all_states[..., : self.size], all_states

    def _inputs(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """The contribution of the observations to the gates, `[M, B, *shape] -> [M, B, gates]`."""
        return linear(params, "input", self.dense.forward(scope(params, "dense."), obs))

    def _next_state(self, params: Mapping[str, Tensor], inputs: Tensor, state: Tensor) -> Tensor:
        from_state = linear(params, "state", state[..., : self.size])
        if self.cell == "gru":
            return gru_state(inputs, from_state, state)
        return lstm_state(inputs + from_state, state[..., self.size :])


def gru_state(inputs: Tensor, from_state: Tensor, h: Tensor) -> Tensor:
    """h' = (1 - z) * n + z * h, with r, z = sigmoid(x + y), n = tanh(x + r * y) of their gates (Cho et al. 2014,
    arXiv:1406.1078, in torch's form). `inputs` x and `from_state` y are `[..., 3 * size]`."""
    size = h.shape[-1]
    r, z = (inputs[..., : 2 * size] + from_state[..., : 2 * size]).sigmoid().chunk(2, -1)
    n = torch.addcmul(inputs[..., 2 * size :], r, from_state[..., 2 * size :]).tanh()
    return torch.lerp(n, h, z)


def lstm_state(gates: Tensor, c: Tensor) -> Tensor:
    """h' = o * tanh(c'), c' = f * c + i * g, concatenated (Hochreiter & Schmidhuber 1997; Gers et al. 2000)."""
    i, f, g, o = gates.chunk(4, -1)
    c = torch.addcmul(f.sigmoid() * c, i.sigmoid(), g.tanh())
    return torch.cat((o.sigmoid() * c.tanh(), c), -1)
