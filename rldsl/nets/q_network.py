"""Q-network: the values of all discrete actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from rldsl.envs.contract import Discrete, Spaces
from rldsl.nets.heads import DuelingHead, Head
from rldsl.nets.layout import scope
from rldsl.nets.mlp import MLPTrunk
from rldsl.nets.network import Network, Part
from rldsl.nets.trunk import Trunk, build_trunk
from rldsl.spec.net import MLP, Conv, Net


@dataclass(frozen=True)
class QNetwork(Network):
    """Q(s, a) for all actions a; `unroll` also works with a recurrent trunk."""

    trunk: Trunk
    head: Head | DuelingHead

    @classmethod
    def build(cls, net: Net, spaces: Spaces, *, dueling: bool = False, gain: float = 1.0) -> Self:
        """`gain` is that of the head's weights. With `dueling`, each stream has its own last hidden layer."""
        if not isinstance(spaces.action, Discrete):
            raise TypeError("only discrete actions can have a value each")
        if not dueling:
            trunk = build_trunk(net, spaces.observation_shape)
            return cls(trunk, Head(trunk.features, spaces.action.n, net.init, gain))
        body, last = _split_last_layer(net)
        trunk = build_trunk(body, spaces.observation_shape)
        hidden = MLPTrunk.build(last, (trunk.features,))
        value, advantage = (Head(hidden.features, outputs, net.init, gain) for outputs in (1, spaces.action.n))
        return cls(trunk, DuelingHead(hidden, value, advantage))

    @property
    def parts(self) -> Mapping[str, Part]:
        return {"trunk.": self.trunk, "": self.head}

    @property
    def state_size(self) -> int:
        return self.trunk.state_size

    @property
    def acting_state_size(self) -> int:
        return self.trunk.state_size

    def q(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """Q-values `[M, B, A]` of independent observations `[M, B, *shape]`."""
        return self._q(params, self.trunk.forward(scope(params, "trunk."), obs))

    def act(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        features, state = self.trunk.step(scope(params, "trunk."), obs, state)
        return self._q(params, features), state

    def unroll(self, params: Mapping[str, Tensor], obs: Tensor, starts: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Q-values `[M, T, N, A]` and states `[M, T, N, S]` of sequences; see `Trunk.unroll`."""
        features, states = self.trunk.unroll(scope(params, "trunk."), obs, starts, state)
        return torch.unflatten(self._q(params, features.flatten(1, 2)), 1, starts.shape[1:]), states

    def _q(self, params: Mapping[str, Tensor], features: Tensor) -> Tensor:
        q: Tensor = self.head.forward(params, features)
        return q


def _split_last_layer(net: Net) -> tuple[Net, MLP]:
    """The net without its last hidden layer, and that layer; a net that has none is returned whole, with no layer."""
    if isinstance(net, MLP):
        return net.with_(hidden=net.hidden[:-1]), net.with_(hidden=net.hidden[-1:])
    if isinstance(net, Conv):
        last = MLP(net.hidden[-1:], activation=net.activation, init=net.init)
        return net.with_(hidden=net.hidden[:-1]), last
    return net, MLP((), activation=net.activation, init=net.init)
