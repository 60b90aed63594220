"""What every whole network has: parts behind prefixes, one flat row of parameters a member, perhaps a way to act."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from torch import Tensor

from rldsl.nets.heads import Policy
from rldsl.nets.init import Arrays, stack_members
from rldsl.nets.layout import Layout, prefixed


class Part(Protocol):
    """A trunk or a head."""

    @property
    def layout(self) -> Layout: ...

    def init(self, rng: np.random.Generator) -> Arrays: ...


class Parameters(ABC):
    """A frozen description of a network over members; `layout.views(flat)` are the `params` of its functions."""

    layout: Layout

    def __post_init__(self) -> None:
        layout = Layout.join({prefix: part.layout for prefix, part in self.parts.items()})
        object.__setattr__(self, "layout", layout)

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Part]:
        """By the prefix of their parameters, in the order of the flat row."""

    def init(self, generators: Sequence[np.random.Generator]) -> Tensor:
        """Initial parameters `[M, P]`: each member's from its own generator."""
        return stack_members(self.layout, (self._init_member(rng) for rng in generators))

    def _init_member(self, rng: np.random.Generator) -> Arrays:
        arrays: Arrays = {}
        for prefix, part in self.parts.items():
            arrays |= prefixed(prefix, part.init(rng))
        return arrays


class Network(Parameters):
    """A network that chooses actions."""

    @property
    @abstractmethod
    def state_size(self) -> int:
        """S of the states `[M, N, S]` that the whole network remembers; 0 without recurrence."""

    @property
    @abstractmethod
    def acting_state_size(self) -> int:
        """How much of a state, from its beginning, acting needs."""

    @abstractmethod
    def act(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Policy, Tensor]:
        """What chooses the actions at `obs` `[M, N, *shape]`, and the next acting state."""
