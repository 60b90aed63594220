"""Q-networks of actor-critic methods: the value of a continuous action, or of each discrete action, in a state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Self

import numpy as np
import torch
from torch import Tensor

from rldsl.envs.contract import Discrete, Spaces
from rldsl.nets.heads import Head
from rldsl.nets.layout import Layout, Params, scope
from rldsl.nets.network import Parameters, Part
from rldsl.nets.trunk import MakeTrunk, Trunk, as_float, build_trunk
from rldsl.spec.net import Net


@dataclass(frozen=True)
class Critic(Parameters):
    """Continuous actions are an input beside the observation; for discrete actions there is one output each."""

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
    """The input of a critic of continuous actions: observation and action, `[M, B, F]`."""
    return torch.cat((as_float(obs).flatten(2), action), -1)


BOTH = ("first.", "second.")


@dataclass(frozen=True)
class Twins:
    """Two critics of each member, next to each other in its flat row of parameters.

    They are evaluated in one batched product, as if there were twice as many members, or `separate`: one after the
    other. The latter is better if all layers of one critic are computed while its activations are in the cache, as in
    fused code for a CPU.
    """

    critic: Critic
    separate: bool = False
    layout: Layout = field(init=False, repr=False, compare=False)
    """The parameters of both critics, each with its own prefix."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout.join(dict.fromkeys(BOTH, self.critic.layout)))

    def views(self, flat: Tensor) -> Params:
        """The parameters in `flat` `[M, 2 P]`: `[2 M, *shape]`, or if separate `[M, *shape]` with a prefix for each
        critic."""
        if self.separate:
            return self.layout.views(flat)
        return self.critic.layout.views(flat.view(-1, self.critic.layout.size))

    def init(self, generators: Sequence[np.random.Generator]) -> Tensor:
        """`[M, 2 P]`, both critics of a member from its own generator."""
        return torch.stack([self.critic.init([rng, rng]).flatten() for rng in generators])

    def q(self, params: Params, obs: Tensor, action: Tensor) -> Tensor:
        """`[M, 2, B]`, as `Critic.q`."""
        return self.values(params, beside(obs, action)).squeeze(-1)

    def values(self, params: Params, obs: Tensor) -> Tensor:
        """`[M, 2, B, A]`, as `Critic.values`."""
        return self.both(lambda *arguments: (self.critic.values(*arguments),), params, obs)[0]

    def both(self, function: Callable[..., tuple[Tensor, ...]], params: Params, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The results, `[M, 2, ...]` each, of a function of one critic's parameters and inputs `[M, ...]`."""
        if self.separate:
            outputs = [function(scope(params, prefix), *inputs) for prefix in BOTH]
            return tuple(torch.stack(pair, 1) for pair in zip(*outputs, strict=True))
        return tuple(torch.unflatten(output, 0, (-1, 2)) for output in function(params, *map(twice, inputs)))


def twice(items: Tensor) -> Tensor:
    """`[M, ...]` as `[2 M, ...]`: each member twice, for both critics."""
    return items.repeat_interleave(2, 0)
