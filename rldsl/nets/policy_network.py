"""Policy network of SAC and CrossQ: a policy, and the log temperature log alpha."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from torch import Tensor

from rldsl.envs.contract import Spaces
from rldsl.nets.heads import Head, Policy, policy_head
from rldsl.nets.init import Arrays
from rldsl.nets.layout import Layout, scope
from rldsl.nets.network import Network, Part
from rldsl.nets.trunk import MakeTrunk, Trunk, build_trunk
from rldsl.spec.net import Net


@dataclass(frozen=True)
class Temperature:
    """The parameter log alpha. It is 0 until the agent sets it."""

    @cached_property
    def layout(self) -> Layout:
        return Layout.of({"log_alpha": ()})

    def init(self, rng: np.random.Generator) -> Arrays:
        return {"log_alpha": np.zeros((), np.float32)}


@dataclass(frozen=True)
class PolicyNetwork(Network):
    """Parameters are named `actor.…` and `log_alpha`. The trunk is feed-forward."""

    trunk: Trunk
    head: Head
    temperature: Temperature = Temperature()

    @classmethod
    def build(cls, net: Net, spaces: Spaces, make: MakeTrunk = build_trunk) -> Self:
        """The standard deviation of continuous actions is state-dependent."""
        trunk = make(net, spaces.observation_shape)
        return cls(trunk, policy_head(trunk.features, spaces.action, None, net.init, 0.01))

    @property
    def parts(self) -> Mapping[str, Part]:
        return {"actor.trunk.": self.trunk, "actor.": self.head, "": self.temperature}

    @property
    def state_size(self) -> int:
        return 0

    @property
    def acting_state_size(self) -> int:
        return 0

    def policy(self, params: Mapping[str, Tensor], obs: Tensor) -> Policy:
        """Logits `[M, B, A]`, or a Gaussian."""
        features = self.trunk.forward(scope(params, "actor.trunk."), obs)
        policy: Policy = self.head.forward(scope(params, "actor."), features)
        return policy

    def act(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Policy, Tensor]:
        return self.policy(params, obs), state
