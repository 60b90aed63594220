"""The interface between the training loop and an algorithm, built-in or a user's own."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from rldsl.envs.contract import Spaces, Step
from rldsl.spec.agent import Agent
from rldsl.spec.compute import Compute
from rldsl.store.append_only_ring import AppendOnlyRing


@dataclass(frozen=True)
class AgentContext:
    """What an algorithm is built from: a spec and a seed per member; spaces, environments and budget in common."""

    specs: Sequence[Agent]
    seeds: Sequence[int]
    spaces: Spaces
    num_envs: int
    frames: int
    compute: Compute = field(default_factory=Compute)

    @property
    def device(self) -> str:
        """The device to train on, as torch names it. The training loop has resolved `auto`; elsewhere it is the CPU."""
        return "cpu" if self.compute.device == "auto" else self.compute.device

    @property
    def members(self) -> int:
        return len(self.specs)


class World(Protocol):
    """The vector environment of a pack, as an algorithm sees it. Rows are members x environments, members first."""

    observation: np.ndarray
    """Current observations `[rows, *shape]`. The next step overwrites this array."""

    @property
    def critic_observation(self) -> np.ndarray | None:
        """Current observations `[rows, *critic_shape]` of the critic, if it has its own."""

    @property
    def frame(self) -> int:
        """Frames of each member so far."""

    @property
    def exhausted(self) -> bool:
        """Whether the frame budget is used up: `iterate` must not step any further."""

    def step(self, actions: np.ndarray) -> Step:
        """Step all rows. The result is what to learn from; scores are computed from the raw rewards."""


Policy: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Maps observations `[M, N, ...]` and episode starts `[M, N]` to actions."""


class Learner(ABC):
    """An algorithm that trains the agents of a pack. The training loop calls `iterate` until the budget is used up."""

    columns: ClassVar[tuple[str, ...]] = ()
    """Names of the metrics that `metrics` returns."""

    @abstractmethod
    def __init__(self, context: AgentContext) -> None: ...

    @abstractmethod
    def iterate(self, world: World) -> None:
        """One iteration of acting and learning. Checkpoints are taken between iterations."""

    def metrics(self) -> Mapping[str, np.ndarray]:
        """The latest values of `columns`, `[M]` each."""
        return {}

    @abstractmethod
    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        """A snapshot of the current policy for `num_envs` environments per member, with RNGs from `seeds`."""

    def notes(self) -> dict[str, Any]:
        """What to record in the journal when training starts: device, compiled or eager, and the like."""
        return {}

    def learning(self) -> bool:
        """Whether gradient steps have begun. Until then, frames per second say nothing about the time that is left."""
        return True

    def forget_episodes(self) -> None:
        """Called on resume if the environments could not restore their state: all episodes start anew."""
        return

    def diverged(self) -> np.ndarray:
        """Whether a member's parameters are no longer finite, `[M]`."""
        return np.zeros(1, bool)

    def reset_diverged(self, member: int) -> None:
        """Reset a diverged member so that it cannot slow down the others; it is no longer logged or saved."""
        return

    @abstractmethod
    def state(self, member: int) -> dict[str, Any]:
        """Everything one member needs to resume exactly: nested dicts of numpy arrays and plain values."""

    def append_only_ring(self, member: int) -> AppendOnlyRing | None:
        """The large append-only part of `state`, if any: finished segments are saved ahead of the checkpoint."""
        return None

    @abstractmethod
    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """Load what `state` returned for one member."""

    def policy_state(self, member: int) -> dict[str, Any]:
        """The part of `state` that `policy` needs: what is kept of the best policy."""
        return self.state(member)

    def restore_policy(self, member: int, state: Mapping[str, Any]) -> None:
        """Load one member's policy from what `policy_state` or `state` returned."""
        self.restore(member, state)

    def initialize(self, member: int, state: Mapping[str, Any]) -> None:
        """Start one member with the weights in what `policy_state` or `state` returned for another session."""
        self.restore_policy(member, state)
