"""Heads: from the features of a trunk to logits, a Gaussian, a value, or Q-values."""

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
"""Clamp of a state-dependent log standard deviation, as in most SAC implementations."""


class Gaussian(NamedTuple, Generic[Array]):
    """A diagonal Gaussian over actions."""

    mean: Array
    """`[M, B, A]`."""
    log_std: Array
    """`[M, B, A]`, or `[M, 1, A]` if it is state-independent."""


Policy: TypeAlias = Tensor | Gaussian[Tensor]
"""Logits `[M, B, A]` of discrete actions, or a Gaussian over continuous ones."""


@dataclass(frozen=True)
class Head:
    """One linear layer, named "head"."""

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
        """`read` of the layer's outputs for features `[M, B, F]`."""
        return self.read(params, linear(params, "head", features))

    def read(self, params: Mapping[str, Array], outputs: Array) -> Any:
        """The distribution or value from the layer's outputs `[M, B, outputs]`, in torch or numpy."""
        return outputs


@dataclass(frozen=True)
class GaussianHead(Head):
    """A Gaussian whose log standard deviation is a state-independent parameter."""

    log_std: float

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(linear_shapes("head", self.features, self.outputs) | {"log_std": (1, self.outputs)})

    def init(self, rng: np.random.Generator) -> Arrays:
        return super().init(rng) | {"log_std": np.full((1, self.outputs), self.log_std, np.float32)}

    def read(self, params: Mapping[str, Array], outputs: Array) -> Gaussian[Array]:
        return Gaussian(outputs, params["log_std"])


@dataclass(frozen=True)
class StateDependentGaussianHead(Head):
    """A Gaussian whose log standard deviation is an output of the layer, after the mean."""

    def read(self, params: Mapping[str, Array], outputs: Array) -> Gaussian[Array]:
        actions = self.outputs // 2
        return Gaussian(outputs[..., :actions], outputs[..., actions:].clip(*LOG_STD_BOUNDS))


@dataclass(frozen=True)
class DuelingHead:
    """q = v + a - mean(a), with separate hidden layers for v and a (Wang et al. 2016, arXiv:1511.06581, eq. 9)."""

    hidden: MLPTrunk
    """Hidden layers of each stream."""
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
    """Logits for discrete actions, a Gaussian for continuous ones: its log standard deviation is a parameter, initially
    `log_std`, or state-dependent if `log_std` is None."""
    if isinstance(action, Discrete):
        return Head(features, action.n, initial, gain)
    actions = prod(action.shape)
    if log_std is None:
        return StateDependentGaussianHead(features, 2 * actions, initial, gain)
    return GaussianHead(features, actions, initial, gain, log_std)


def unflatten_policy(policy: Policy, steps: torch.Size) -> Policy:
    """Unflatten the policy of sequences: `[M, T * N, A]` to `[M, T, N, A]`, and `[M, 1, A]` to `[M, 1, 1, A]`."""
    if not isinstance(policy, Gaussian):
        return torch.unflatten(policy, 1, steps)
    mean, log_std = policy
    state_dependent = log_std.shape[1] == mean.shape[1]
    log_std = torch.unflatten(log_std, 1, steps) if state_dependent else log_std.unsqueeze(1)
    return Gaussian(torch.unflatten(mean, 1, steps), log_std)
