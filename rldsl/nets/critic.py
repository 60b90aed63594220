"""Critics of a policy: the value of an action, or of each of a few, in a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np
import torch
from torch import Tensor

from rldsl.envs.contract import Discrete, Spaces
from rldsl.nets.heads import Head
from rldsl.nets.layout import Params, scope
from rldsl.nets.network import Parameters, Part
from rldsl.nets.trunk import MakeTrunk, Trunk, as_float, build_trunk
from rldsl.spec.net import Net


@dataclass(frozen=True)
class Critic(Parameters):
    """Continuous actions are read beside the observation; of discrete ones every one gets its value."""

    trunk: Trunk
    head: Head

    @classmethod
    def build(cls, net: Net, spaces: Spaces, make: MakeTrunk = build_trunk) -> Self:
        action, observed = spaces.action, spaces.observation_shape
        if isinstance(action, Discrete):
            trunk = make(net, observed)
            return cls(trunk, Head(trunk.features, action.n, net.init, 1.0))
        trunk = make(net, (prod(observed) + prod(action.shape),))
        return cls(trunk, Head(trunk.features, 1, net.init, 1.0))

    @property
    def parts(self) -> Mapping[str, Part]:
        return {"trunk.": self.trunk, "": self.head}

    def q(self, params: Mapping[str, Tensor], obs: Tensor, action: Tensor) -> Tensor:
        """`[M, B]` of continuous actions `[M, B, A]` at `[M, B, *shape]`."""
        return self.values(params, beside(obs, action)).squeeze(-1)

    def values(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """`[M, B, A]` of all discrete actions at `[M, B, *shape]`."""
        outputs: Tensor = self.head.forward(params, self.trunk.forward(scope(params, "trunk."), obs))
        return outputs


def beside(obs: Tensor, action: Tensor) -> Tensor:
    """What a critic of continuous actions reads, `[M, B, F]`."""
    return torch.cat((as_float(obs).flatten(2), action), -1)


@dataclass(frozen=True)
class Twins:
    """Two critics of each member: in its flat row they lie side by side, to their network they are members."""

    critic: Critic

    def views(self, flat: Tensor) -> Params:
        """The parameters `[2 M, *shape]` inside `flat` `[M, 2 P]`."""
        return self.critic.layout.views(flat.view(-1, self.critic.layout.size))

    def init(self, generators: Sequence[np.random.Generator]) -> Tensor:
        """`[M, 2 P]`: both critics of a member from its own generator."""
        return torch.stack([self.critic.init([rng, rng]).flatten() for rng in generators])

    def q(self, params: Mapping[str, Tensor], obs: Tensor, action: Tensor) -> Tensor:
        """`[M, 2, B]`, as `Critic.q`."""
        if one_by_one(obs):
            return torch.stack([self.critic.q(one, obs, action) for one in apart(params)], 1)
        return self.critic.q(params, twice(obs), twice(action)).unflatten(0, (-1, 2))

    def values(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """`[M, 2, B, A]`, as `Critic.values`."""
        if one_by_one(obs):
            return torch.stack([self.critic.values(one, obs) for one in apart(params)], 1)
        return self.critic.values(params, twice(obs)).unflatten(0, (-1, 2))


def one_by_one(obs: Tensor) -> bool:
    """Compiled for a CPU, the layers of one critic stay in its cache; elsewhere fewer, larger products are better."""
    return torch.compiler.is_compiling() and obs.is_cpu


def apart(params: Mapping[str, Tensor]) -> list[Params]:
    """The parameters `[2 M, ...]` of both critics as those of each, `[M, ...]`."""
    pairs = {name: both.unflatten(0, (-1, 2)).unbind(1) for name, both in params.items()}
    return [{name: pair[number] for name, pair in pairs.items()} for number in range(2)]


def twice(items: Tensor) -> Tensor:
    """`[M, ...]` as `[2 M, ...]`, for both critics of each member."""
    return items.repeat_interleave(2, 0)
