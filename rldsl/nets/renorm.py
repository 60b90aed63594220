"""Trunk with batch renormalisation of the input and after each activation, as in CrossQ.

The running statistics are part of the flat parameters, without gradients, so that they are saved, copied and used for
acting with them. `train` returns new statistics, which the caller writes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from torch import Tensor

from rldsl.maths.batch_renorm import batch_renorm_eval, batch_renorm_train
from rldsl.nets.activations import ACTIVATIONS
from rldsl.nets.init import Arrays
from rldsl.nets.layout import Layout, Shape, prefixed, scope
from rldsl.nets.linear import linear
from rldsl.nets.mlp import MLPTrunk
from rldsl.nets.trunk import FeedForward, Trunk, as_float, build_trunk
from rldsl.spec.net import MLP, Conv, Net

Norm = Callable[[str, Tensor], Tensor]
"""From the name of a norm and features `[M, B, F]` to normalised features."""

STATISTICS = "statistics."
"""Prefix of the running statistics."""


@dataclass(frozen=True)
class RenormTrunk(FeedForward):
    """Layers named as in an MLP; norm "0" is that of the input, norm i that of the activations of layer i - 1."""

    body: Trunk | None
    """Convolutions before the dense layers, for images."""
    dense: MLPTrunk
    momentum: float
    warmup: int

    @classmethod
    def build(cls, net: Net, observation_shape: Shape, momentum: float, warmup: int) -> Self:
        match net:
            case MLP():
                return cls(None, MLPTrunk.build(net, observation_shape), momentum, warmup)
            case Conv():
                body = build_trunk(net.with_(hidden=()), observation_shape)
                layers = MLP(net.hidden, activation=net.activation, init=net.init)
                return cls(body, MLPTrunk.build(layers, (body.features,)), momentum, warmup)
        raise TypeError(f"batch renormalisation supports MLP and Conv, not {type(net).__name__}")

    @cached_property
    def widths(self) -> dict[str, int]:
        """Features of each norm."""
        return {str(index): width for index, width in enumerate((self.dense.inputs, *self.dense.hidden))}

    @cached_property
    def statistics(self) -> Layout:
        running = {f"{name}.{what}": (width,) for name, width in self.widths.items() for what in ("mean", "var")}
        return Layout.of({**running, "batches": ()})

    @cached_property
    def layout(self) -> Layout:
        affine = {f"{name}.{what}": (1, width) for name, width in self.widths.items() for what in ("scale", "shift")}
        body = {} if self.body is None else {"body.": self.body.layout}
        norms = {"norm.": Layout.of(affine), STATISTICS: self.statistics}
        return Layout.join({**body, "": self.dense.layout, **norms})

    @property
    def features(self) -> int:
        return self.dense.features

    def init(self, rng: np.random.Generator) -> Arrays:
        arrays = {} if self.body is None else prefixed("body.", self.body.init(rng))
        arrays |= self.dense.init(rng)
        for name, width in self.widths.items():
            arrays |= {f"norm.{name}.scale": _full(1, width), f"norm.{name}.shift": _full(0, width)}
            arrays |= {f"{STATISTICS}{name}.mean": _full(0, width)[0], f"{STATISTICS}{name}.var": _full(1, width)[0]}
        return arrays | {f"{STATISTICS}batches": np.zeros((), np.float32)}

    def forward(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """With the running statistics (evaluation mode)."""

        def norm(name: str, x: Tensor) -> Tensor:
            return batch_renorm_eval(x, self._running(params, name))

        return self._forward(params, obs, norm)

    def train(self, params: Mapping[str, Tensor], obs: Tensor) -> tuple[Tensor, Tensor]:
        """With the statistics of the batch (training mode); also returns the new running statistics, flat, `[M, S]`."""
        new: dict[str, Tensor] = {}

        def norm(name: str, x: Tensor) -> Tensor:
            normal, state = batch_renorm_train(x, self._running(params, name), self.momentum, warmup=self.warmup)
            new.update({f"{name}.mean": state["mean"], f"{name}.var": state["var"]})
            return normal

        features = self._forward(params, obs, norm)
        new["batches"] = params[f"{STATISTICS}batches"] + 1
        return features, self.statistics.flatten({name: value.reshape(len(value), -1) for name, value in new.items()})

    def _forward(self, params: Mapping[str, Tensor], obs: Tensor, norm: Norm) -> Tensor:
        x = as_float(obs).flatten(2) if self.body is None else self.body.forward(scope(params, "body."), obs)
        activate = ACTIVATIONS[self.dense.activation]
        x = _affine(params, "0", norm("0", x))
        for index, (name, _, _) in enumerate(self.dense.layers, start=1):
            x = _affine(params, str(index), norm(str(index), activate(linear(params, name, x))))
        return x

    def _running(self, params: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
        state = {what: params[f"{STATISTICS}{name}.{what}"].detach() for what in ("mean", "var")}
        return {**state, "batches": params[f"{STATISTICS}batches"].detach()}


def _affine(params: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    return params[f"norm.{name}.shift"] + x * params[f"norm.{name}.scale"]


def _full(value: float, width: int) -> np.ndarray:
    return np.full((1, width), value, np.float32)
