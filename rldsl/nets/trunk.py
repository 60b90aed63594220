"""Trunks: from observations to features, feed-forward or recurrent.

A trunk is a frozen dataclass. Parameters `[M, ...]` are an argument of every call, so one trunk serves all members.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from rldsl.nets.init import Arrays
from rldsl.nets.layout import Layout, Shape
from rldsl.spec.implementation import implementation
from rldsl.spec.net import Net


class Trunk(ABC):
    """Features of observations. The recurrent state of N episodes in progress is `[M, N, S]`."""

    @property
    @abstractmethod
    def layout(self) -> Layout: ...

    @property
    @abstractmethod
    def features(self) -> int: ...

    @property
    @abstractmethod
    def state_size(self) -> int:
        """S; 0 if feed-forward."""

    @abstractmethod
    def init(self, rng: np.random.Generator) -> Arrays:
        """Initial parameters of one member."""

    @abstractmethod
    def forward(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """Features `[M, B, F]` of independent observations `[M, B, *shape]`."""

    @abstractmethod
    def step(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Features `[M, N, F]` of the next observations `[M, N, *shape]`, and the next state."""

    @abstractmethod
    def unroll(self, params: Mapping[str, Tensor], obs: Tensor, starts: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Features `[M, T, N, F]` of sequences `[M, T, N, *shape]`, and the states `[M, T, N, S]` after each of them.

        `state` `[M, N, S]` is the state before the sequence; it is reset to 0 before an observation where `starts`
        `[M, T, N]` is True.
        """


class FeedForward(Trunk):
    """A trunk without recurrence: states are empty."""

    @property
    def state_size(self) -> int:
        return 0

    def step(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return self.forward(params, obs), state

    def unroll(self, params: Mapping[str, Tensor], obs: Tensor, starts: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        features = torch.unflatten(self.forward(params, obs.flatten(1, 2)), 1, obs.shape[1:3])
        return features, state.unsqueeze(1).expand(-1, obs.shape[1], -1, -1)


MakeTrunk: TypeAlias = Callable[[Net, Shape], Trunk]
"""From a spec and an observation shape to a trunk, like `build_trunk`."""


def build_trunk(net: Net, observation_shape: Shape) -> Trunk:
    """Build the trunk for a spec: `build(net, observation_shape)` of the class named by the spec's `implementation`."""
    trunk: Trunk = implementation(net).build(net, observation_shape)
    return trunk


def as_float(obs: Tensor) -> Tensor:
    """Observations in float32; bytes are scaled to [0, 1]."""
    return obs.to(torch.float32) / 255 if obs.dtype == torch.uint8 else obs.to(torch.float32)
