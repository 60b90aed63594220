"""The base class of all vector environments, their spaces and the result of a step.

A row is one of the environments that are stepped together: index `i` of the first axis of every array.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

ALL_ROWS = slice(None)


class EnvError(Exception):
    """An environment cannot be made or cannot do what was asked. The message is one sentence for the user."""


@dataclass(frozen=True)
class Discrete:
    """Actions 0, 1, ..., n - 1."""

    n: int


@dataclass(frozen=True, eq=False)
class Continuous:
    """Action vectors. `low` and `high` are the environment's own bounds per dimension and may be infinite."""

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
        """Clips [rows, dim] actions to [-1, 1] and maps them affinely to the bounds, in float64.

        Actions of a dimension with an infinite bound are not rescaled, only clipped to the other bound if it is finite.
        """
        scaled: np.ndarray = np.maximum(actions, -1.0, dtype=np.float64)
        np.minimum(scaled, 1.0, out=scaled)
        scaled += 1.0
        scaled *= self._half_width
        scaled += self.low
        if not self._all_bounded:
            scaled = np.where(self._bounded, scaled, np.maximum(actions, self.low))
        np.minimum(scaled, self.high, out=scaled)  # rounding may have exceeded the bound
        return scaled

    @cached_property
    def _bounded(self) -> np.ndarray:
        bounded: np.ndarray = np.isfinite(self.low) & np.isfinite(self.high)
        return bounded

    @cached_property
    def _all_bounded(self) -> bool:
        return bool(self._bounded.all())

    @cached_property
    def _half_width(self) -> np.ndarray:
        return np.where(self._bounded, (self.high - self.low) / 2.0, 0.0)


@dataclass(frozen=True)
class Spaces:
    """Observations and actions of one environment."""

    observation_shape: tuple[int, ...]
    observation_dtype: np.dtype
    action: Discrete | Continuous
    stack: int = 1
    """Number of stacked frames in the first axis of an observation, newest last; 1 if frames are not stacked."""
    critic_shape: tuple[int, ...] | None = None
    """Shape of the critic's privileged float32 observations; None: the critic sees what the policy sees."""


class Step(NamedTuple):
    """The result of one step of all rows.

    Arrays may be buffers of the environment that the next `step` or `reset` overwrites, so copy what you keep.
    `ended` and the final observations belong to the caller. No array shares memory with the simulation: writing to
    one does not affect later steps.
    """

    observation: np.ndarray
    """[rows, *shape]; after the end of an episode, the first observation of the next one (same-step autoreset)."""
    reward: np.ndarray
    """[rows] float64, raw."""
    terminated: np.ndarray
    """[rows] bool: the episode ended in a terminal state; do not bootstrap."""
    truncated: np.ndarray
    """[rows] bool: the time limit ended the episode; bootstrap from the final observation unless also terminated."""
    ended: np.ndarray
    """[k] indices of the rows whose episode ended in this step, ascending."""
    final_observation: np.ndarray
    """[k, *shape]: the last observations of the episodes that ended."""
    learning_reward: np.ndarray | None = None
    """[rows] float64: the reward to learn from, such as a clipped one; None: the raw reward."""
    life_lost: np.ndarray | None = None
    """[rows] bool: a life was lost. The episode continues, but learning treats it as terminated."""
    final_critic_observation: np.ndarray | None = None
    """[k, *critic_shape]: the critic's last observations of the episodes that ended, if it has its own."""
    ended_metrics: Mapping[str, np.ndarray] | None = None
    """By the names of `VectorEnv.episode_metrics`, [k]: numbers of the episodes that ended, such as a success."""

    def to_learn(self) -> "Step":
        """The step as an agent learns from it. Scores are computed from the raw step."""
        if self.learning_reward is None and self.life_lost is None:
            return self
        reward = self.reward if self.learning_reward is None else self.learning_reward
        terminated = self.terminated if self.life_lost is None else self.terminated | self.life_lost
        return self._replace(reward=reward, terminated=terminated, learning_reward=None, life_lost=None)


class VectorEnv(ABC):
    """Independent copies of one environment, stepped as one batch, each with its own seed and RNG.

    The trajectory of a row does not depend on the other rows.
    """

    rows: int
    spaces: Spaces
    episode_metrics: tuple[str, ...] = ()
    """Names of numbers that the environment gives for every episode, in `Step.ended_metrics`; they are logged."""
    exact_resume: bool = False
    """Whether `state` and `restore` work and later steps after `restore` are bit-identical to those after `state`."""

    @property
    def critic_observation(self) -> np.ndarray | None:
        """[rows, *critic_shape] float32: the critic's observation after the last `reset`, `step` or `restore`.

        A buffer of the environment, as in `Step`. None if `spaces.critic_shape` is None.
        """
        return None

    @abstractmethod
    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """Seeds every row, starts an episode in each and returns the [rows, *shape] observations."""

    @abstractmethod
    def step(self, actions: np.ndarray) -> Step:
        """Applies actions: int [rows] if discrete, otherwise [rows, dim] in [-1, 1] (see `Continuous.rescale`)."""

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        """The state of some rows for `restore`: a nested dict of arrays and JSON-compatible values, all copies."""
        raise EnvError(f"{type(self).__name__} cannot save its state, so a run in it cannot be resumed exactly.")

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        """Restores some rows instead of resetting them; returns the observations of all rows."""
        raise EnvError(f"{type(self).__name__} cannot restore a state, so a run in it cannot be resumed exactly.")

    def close(self) -> None:  # noqa: B027  (most environments hold nothing that needs closing)
        """Frees resources. Only `close` may be called afterwards."""

    def _checked_seeds(self, seeds: Sequence[int]) -> list[int]:
        if len(seeds) != self.rows:
            raise EnvError(f"reset needs one seed for each of the {self.rows} rows, but got {len(seeds)}.")
        return [int(seed) for seed in seeds]
