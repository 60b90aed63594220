"""What is read off the features of a trunk: logits, a Gaussian, a value, or the values of actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from rldsl.envs.contract import Continuous, Discrete
from rldsl.nets.init import Arrays
from rldsl.nets.layout import Layout, prefixed, scope
from rldsl.nets.linear import init_linear, linear, linear_shapes
from rldsl.nets.mlp import MLPTrunk
from rldsl.spec.net import Init

Array = TypeVar("Array", Tensor, np.ndarray)

LOG_STD_BOUNDS = (-5.0, 2.0)
"""Of a head that gives log deviations: beyond them a Gaussian is a point, or drowns the mean."""


class Gaussian(NamedTuple, Generic[Array]):
    """Independent normal distributions of the action's dimensions."""

    mean: Array
    """`[M, B, A]`."""
    log_std: Array
    """`[M, B, A]`, or `[M, 1, A]` where it does not depend on the observation."""


Policy: TypeAlias = Tensor | Gaussian[Tensor]
"""Logits `[M, B, A]` of discrete actions, or a Gaussian of continuous ones."""


@dataclass(frozen=True)
class Head:
    """One linear layer, "head"."""

    features: int
    outputs: int
    initial: Init
    gain: float

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(linear_shapes("head", self.features, self.outputs))

    def init(self, rng: np.random.Generator) -> Arrays:
        return init_linear(rng, "head", self.features, self.outputs, self.initial, self.gain)

    def forward(self, params: Mapping[str, Tensor], features: Tensor) -> Any:
        """`[M, B, F]` to what `read` makes of `[M, B, outputs]`."""
        return self.read(params, linear(params, "head", features))

    def read(self, params: Mapping[str, Array], outputs: Array) -> Any:
        """What the outputs of the layer mean; in torch and in numpy alike."""
        return outputs


@dataclass(frozen=True)
class GaussianHead(Head):
    """The mean of a Gaussian whose log deviation is a parameter of its own, whatever is observed."""

    log_std: float

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(linear_shapes("head", self.features, self.outputs) | {"log_std": (1, self.outputs)})

    def init(self, rng: np.random.Generator) -> Arrays:
        return super().init(rng) | {"log_std": np.full((1, self.outputs), self.log_std, np.float32)}

    def read(self, params: Mapping[str, Array], outputs: Array) -> Gaussian[Array]:
        return Gaussian(outputs, params["log_std"])


@dataclass(frozen=True)
class ObservingGaussianHead(Head):
    """The mean of a Gaussian and, behind it, its log deviation: both depend on what is observed."""

    def read(self, params: Mapping[str, Array], outputs: Array) -> Gaussian[Array]:
        actions = self.outputs // 2
        return Gaussian(outputs[..., :actions], outputs[..., actions:].clip(*LOG_STD_BOUNDS))


@dataclass(frozen=True)
class DuelingHead:
    """q = v + a - mean(a), v and a each behind a hidden part of its own (Wang et al. 2016, arXiv:1511.06581, eq. 9)."""

    hidden: MLPTrunk
    """The description of both hidden parts."""
    value: Head
    advantage: Head

    @cached_property
    def layout(self) -> Layout:
        return Layout.join(
            {
                "value.hidden.": self.hidden.layout,
                "value.": self.value.layout,
                "advantage.hidden.": self.hidden.layout,
                "advantage.": self.advantage.layout,
            }
        )

    def init(self, rng: np.random.Generator) -> Arrays:
        return self._init_stream(rng, "value.", self.value) | self._init_stream(rng, "advantage.", self.advantage)

    def _init_stream(self, rng: np.random.Generator, prefix: str, head: Head) -> Arrays:
        return prefixed(f"{prefix}hidden.", self.hidden.init(rng)) | prefixed(prefix, head.init(rng))

    def forward(self, params: Mapping[str, Tensor], features: Tensor) -> Tensor:
        value = self._stream(params, "value.", self.value, features)
        advantage = self._stream(params, "advantage.", self.advantage, features)
        return value + advantage - advantage.mean(-1, keepdim=True)

    def _stream(self, params: Mapping[str, Tensor], prefix: str, head: Head, features: Tensor) -> Tensor:
        hidden = self.hidden.forward(scope(params, f"{prefix}hidden."), features)
        outputs: Tensor = head.forward(scope(params, prefix), hidden)
        return outputs


def policy_head(
    features: int, action: Discrete | Continuous, log_std: float | None, initial: Init, gain: float
) -> Head:
    """Logits of discrete actions. Of continuous ones a Gaussian: its log deviation starts at `log_std`, or depends on
    the observation if that is None."""
    if isinstance(action, Discrete):
        return Head(features, action.n, initial, gain)
    actions = prod(action.shape)
    if log_std is None:
        return ObservingGaussianHead(features, 2 * actions, initial, gain)
    return GaussianHead(features, actions, initial, gain, log_std)


def by_step(policy: Policy, steps: torch.Size) -> Policy:
    """Of sequences: `[M, T * N, A]` as `[M, T, N, A]`, and `[M, 1, A]` as `[M, 1, 1, A]`."""
    if isinstance(policy, Gaussian):
        mean, log_std = policy
        wide = log_std.unflatten(1, steps) if log_std.shape[1] == mean.shape[1] else log_std.unsqueeze(1)
        return Gaussian(mean.unflatten(1, steps), wide)
    return policy.unflatten(1, steps)
