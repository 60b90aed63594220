"""What every environment promises: spaces, one step of all rows, and a state that can be saved."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

ALL_ROWS = slice(None)


class EnvError(Exception):
    """An environment cannot do what was asked; the message is one sentence for the person who asked."""


@dataclass(frozen=True)
class Discrete:
    """Actions 0, 1, ..., n - 1."""

    n: int


@dataclass(frozen=True, eq=False)
class Continuous:
    """Action vectors; `low` and `high` are the environment's own bounds, one per dimension, perhaps infinite."""

    low: np.ndarray
    high: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.low.shape

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Continuous):
            return NotImplemented
        return np.array_equal(self.low, other.low) and np.array_equal(self.high, other.high)

    def rescale(self, actions: np.ndarray) -> np.ndarray:
        """Map [rows, dim] actions from [-1, 1], clipped to it, affinely onto the bounds, in float64.

        A dimension with an infinite bound has no such map: its actions pass through as they are, and only
        respect the other bound, if that one is finite.
        """
        scaled = np.maximum(actions, -1.0, dtype=np.float64)
        np.minimum(scaled, 1.0, out=scaled)
        scaled += 1.0
        scaled *= self._half_width
        scaled += self.low
        if not self._all_bounded:
            scaled = np.where(self._bounded, scaled, np.maximum(actions, self.low))
        return np.minimum(scaled, self.high, out=scaled)  # rounding may have passed it

    @cached_property
    def _bounded(self) -> np.ndarray:
        return np.isfinite(self.low) & np.isfinite(self.high)

    @cached_property
    def _all_bounded(self) -> bool:
        return bool(self._bounded.all())

    @cached_property
    def _half_width(self) -> np.ndarray:
        return np.where(self._bounded, (self.high - self.low) / 2.0, 0.0)


@dataclass(frozen=True)
class Spaces:
    """What a policy sees and does in one row, and what a critic sees there."""

    observation_shape: tuple[int, ...]
    observation_dtype: np.dtype
    action: Discrete | Continuous
    stack: int = 1
    """How many frames the first axis of an observation holds, the newest last; 1 where it holds something else."""
    critic_shape: tuple[int, ...] | None = None
    """Of the float32 observations that are a critic's own; None: it sees what the policy sees."""


class Step(NamedTuple):
    """What one step of all rows gave.

    The arrays may be the environment's own, overwritten by its next `step` or `reset`: copy what you keep.
    `ended` and the final observations are the caller's. No array shares memory with the environment's dynamics, so
    writing into one never changes what happens next.
    """

    observation: np.ndarray
    """[rows, *shape]: where an episode ended, already the first of the next one (same-step autoreset)."""
    reward: np.ndarray
    """[rows] float64, raw."""
    terminated: np.ndarray
    """[rows] bool: the task ended the episode; nothing follows."""
    truncated: np.ndarray
    """[rows] bool: the time limit cut the episode; bootstrap from its final observation, unless also terminated."""
    ended: np.ndarray
    """[k] rows whose episode ended in this step, ascending."""
    final_observation: np.ndarray
    """[k, *shape] the true last observations of those episodes."""
    learning_reward: np.ndarray | None = None
    """[rows] float64: the reward to learn from, where that is not the raw one."""
    life_lost: np.ndarray | None = None
    """[rows] bool: a life was lost; the episode goes on, but to whoever learns nothing follows."""
    final_critic_observation: np.ndarray | None = None
    """[k, *critic_shape] what a critic saw last of the episodes that ended, where it has observations of its own."""

    def to_learn(self) -> "Step":
        """The step as an agent learns from it; what counts for a score is the raw one."""
        if self.learning_reward is None and self.life_lost is None:
            return self
        reward = self.reward if self.learning_reward is None else self.learning_reward
        terminated = self.terminated if self.life_lost is None else self.terminated | self.life_lost
        return self._replace(reward=reward, terminated=terminated, learning_reward=None, life_lost=None)


class VectorEnv(ABC):
    """Independent rows of one environment, stepped as one batch; each row has its own seed and random stream.

    Rows know nothing of each other: a row alone goes as it goes among others.
    """

    rows: int
    spaces: Spaces
    exact_resume: ClassVar[bool] = False
    """Whether `state` and `restore` work, and what follows a restore equals what followed the save, bit for bit."""

    @property
    def critic_observation(self) -> np.ndarray | None:
        """[rows, *critic_shape] float32: what a critic sees beside the latest `observation`, owned as in `Step`.

        That is the one of `reset`, `step` or `restore`, whichever was last. None where `spaces` has no `critic_shape`.
        """
        return None

    @abstractmethod
    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Seed every row, start an episode in each, and give the [rows, *shape] observations (owned as in `Step`)."""

    @abstractmethod
    def step(self, actions: np.ndarray) -> Step:
        """Act in every row: int [rows] if discrete; [rows, dim] in [-1, 1], as `Continuous.rescale` has it, if not."""

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        """All that `restore` needs for some rows: a nested dict of arrays and JSON-able values, all of them copies."""
        raise EnvError(f"{type(self).__name__} cannot save its state, so a run in it cannot be resumed exactly.")

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        """Some rows go on from a saved state, in place of `reset`; gives the observations of all rows."""
        raise EnvError(f"{type(self).__name__} cannot restore a state, so a run in it cannot be resumed exactly.")

    def close(self) -> None:  # noqa: B027  (most environments hold nothing that needs closing)
        """Free what the rows hold; no call may follow but another `close`."""

    def _checked_seeds(self, seeds: Sequence[int]) -> list[int]:
        if len(seeds) != self.rows:
            raise EnvError(f"reset needs one seed for each of the {self.rows} rows, but got {len(seeds)}.")
        return [int(seed) for seed in seeds]
