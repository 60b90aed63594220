"""Critics of a policy: the value of an action, or of each of a few, in a state."""

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


BOTH = ("first.", "second.")


@dataclass(frozen=True)
class Twins:
    """Two critics of each member, that lie side by side in its flat row."""

    critic: Critic
    layout: Layout = field(init=False, repr=False, compare=False)
    """Of both critics, each behind its own prefix."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout.join(dict.fromkeys(BOTH, self.critic.layout)))

    def views(self, flat: Tensor) -> Params:
        """The parameters inside `flat` `[M, 2 P]`: of one critic after the other, or of both as if members,
        `[2 M, *shape]`."""
        if one_by_one(flat):
            return self.layout.views(flat)
        return self.critic.layout.views(flat.view(-1, self.critic.layout.size))

    def init(self, generators: Sequence[np.random.Generator]) -> Tensor:
        """`[M, 2 P]`: both critics of a member from its own generator."""
        return torch.stack([self.critic.init([rng, rng]).flatten() for rng in generators])

    def q(self, params: Params, obs: Tensor, action: Tensor) -> Tensor:
        """`[M, 2, B]`, as `Critic.q`."""
        return self.values(params, beside(obs, action)).squeeze(-1)

    def values(self, params: Params, obs: Tensor) -> Tensor:
        """`[M, 2, B, A]`, as `Critic.values`."""
        return self.both(lambda *given: (self.critic.values(*given),), params, obs)[0]

    def both(self, one: Callable[..., tuple[Tensor, ...]], params: Params, *seen: Tensor) -> tuple[Tensor, ...]:
        """`[M, 2, ...]` each: what a function of one critic's parameters and of `seen` `[M, ...]` gives for both."""
        if one_by_one(seen[0]):
            said = [one(scope(params, prefix), *seen) for prefix in BOTH]
            return tuple(torch.stack(pair, 1) for pair in zip(*said, strict=True))
        return tuple(given.unflatten(0, (-1, 2)) for given in one(params, *map(twice, seen)))


def one_by_one(on: Tensor) -> bool:
    """Compiled for a CPU, the layers of one critic stay in its cache; elsewhere fewer, larger products are better."""
    return torch.compiler.is_compiling() and on.is_cpu


def twice(items: Tensor) -> Tensor:
    """`[M, ...]` as `[2 M, ...]`, for both critics of each member."""
    return items.repeat_interleave(2, 0)
