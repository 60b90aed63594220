"""Base classes of networks: named parts, flat parameters `[M, P]`, and acting."""

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
    """A network as a frozen dataclass. Its methods take `params = layout.views(flat)`, with `flat` `[M, P]`."""

    layout: Layout

    def __post_init__(self) -> None:
        layout = Layout.join({prefix: part.layout for prefix, part in self.parts.items()})
        object.__setattr__(self, "layout", layout)

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Part]:
        """Trunks and heads by parameter prefix, in the order of the flat parameters."""

    def init(self, generators: Sequence[np.random.Generator]) -> Tensor:
        """Initial parameters `[M, P]`: each member from its own RNG."""
        return stack_members(self.layout, (self._init_member(rng) for rng in generators))

    def _init_member(self, rng: np.random.Generator) -> Arrays:
        arrays: Arrays = {}
        for prefix, part in self.parts.items():
            arrays |= prefixed(prefix, part.init(rng))
        return arrays


class Network(Parameters):
    """A network that can act."""

    @property
    @abstractmethod
    def state_size(self) -> int:
        """S of the recurrent state `[M, N, S]` of the whole network; 0 without recurrence."""

    @property
    @abstractmethod
    def acting_state_size(self) -> int:
        """Size of the leading part of the state that `act` uses."""

    @abstractmethod
    def act(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Policy, Tensor]:
        """The policy output for `obs` `[M, N, *shape]`, and the next acting state."""
