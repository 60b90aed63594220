"""What an algorithm is given and what it gives: the door that built-in agents and a user's own come through."""

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
    """What the members of a pack have: a spec and a seed each; spaces, environments and budget in common."""

    specs: Sequence[Agent]
    seeds: Sequence[int]
    spaces: Spaces
    num_envs: int
    frames: int
    compute: Compute = field(default_factory=Compute)

    @property
    def members(self) -> int:
        return len(self.specs)


class World(Protocol):
    """The environments of a pack, as an algorithm sees them: rows are members times environments, members first."""

    observation: np.ndarray
    """[rows, *shape]: what every row shows now; its own memory, overwritten by the next step."""

    @property
    def critic_observation(self) -> np.ndarray | None:
        """[rows, *critic_shape]: the same for a critic, where it has observations of its own."""

    @property
    def frame(self) -> int:
        """Frames of each member so far."""

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up: an iteration ends there."""

    def step(self, actions: np.ndarray) -> Step:
        """Acts in all rows; what it gives is what to learn from, which may differ from what is scored."""


Policy: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From observations `[M, N, ...]` and whether they begin an episode `[M, N]` to actions, without learning."""


class Learner(ABC):
    """A pack's agents. `iterate` is the algorithm; it is called until the budget is used up."""

    columns: ClassVar[tuple[str, ...]] = ()
    """Names of the metrics that `metrics` gives beside return and speed."""

    @abstractmethod
    def __init__(self, context: AgentContext) -> None: ...

    @abstractmethod
    def iterate(self, world: World) -> None:
        """One round of acting and learning; between two rounds a checkpoint may be taken."""

    def metrics(self) -> Mapping[str, np.ndarray]:
        """The latest loss and the like, [M] each."""
        return {}

    @abstractmethod
    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        """The policy as it is now, for so many environments a member; its chance comes from these seeds."""

    def notes(self) -> dict[str, Any]:
        """What the journal is to say about how this life computes."""
        return {}

    def forget_episodes(self) -> None:
        """Called after a resume where environments cannot go on: every episode begins anew."""
        return

    def diverged(self) -> np.ndarray:
        """Whether a member's numbers are finite no more, `[M]`."""
        return np.zeros(1, bool)

    def reset_diverged(self, member: int) -> None:
        """Makes a diverged member harmless; it is neither logged nor saved any more."""
        return

    @abstractmethod
    def state(self, member: int) -> dict[str, Any]:
        """All that one member needs to go on exactly: nested dictionaries of numpy arrays and plain values."""

    def growing(self, member: int) -> AppendOnlyRing | None:
        """Rows of one member's `state`: what is finished of them is saved ahead of a checkpoint, if they are many."""
        return None

    @abstractmethod
    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """One member goes on from a saved state."""

    def policy_state(self, member: int) -> dict[str, Any]:
        """What `policy` needs of one member: of its state, the part that is kept of the best one."""
        return self.state(member)

    def restore_policy(self, member: int, state: Mapping[str, Any]) -> None:
        """One member's policy is as it was, from what `policy_state` or `state` gave."""
        self.restore(member, state)
