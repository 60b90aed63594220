"""Tasks that can be solved by hand, as a user writes them: a spec, and rows that step together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from rldsl.envs import Continuous, Discrete, Spaces, Step, VectorEnv
from rldsl.envs.contract import ALL_ROWS
from rldsl.spec.environment import Environment


class TinyRows(VectorEnv):
    """Rows whose state is the number of steps of the episode and a cue that was drawn at its start."""

    exact_resume = True
    size: ClassVar[int]
    """Of an observation."""
    action: ClassVar[Discrete | Continuous] = Discrete(2)

    def __init__(self, spec: Any, rows: int, threads: int) -> None:
        self.spec, self.rows = spec, rows
        self.spaces = Spaces((self.size,), np.dtype(np.float32), self.action)
        self.t, self.cue = np.zeros(rows, np.int64), np.zeros(rows, np.int64)

    @abstractmethod
    def observe(self) -> np.ndarray:
        """`[rows, size]`."""

    @abstractmethod
    def outcome(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Reward, terminated and truncated of a step whose number is in `t`."""

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        self.random = [np.random.default_rng(seed) for seed in self._checked_seeds(seeds)]
        self.t[:] = 0
        self.cue[:] = [random.integers(2) for random in self.random]
        return self.observe()

    def step(self, actions: np.ndarray) -> Step:
        reward, terminated, truncated = self.outcome(actions)
        self.t += 1
        ended = (terminated | truncated).nonzero()[0]
        final, own = self.observe()[ended], self.critic_observation
        final_critic = None if own is None else own[ended]
        self.t[ended] = 0
        self.cue[ended] = [self.random[row].integers(2) for row in ended]
        seen = self.observe()
        return Step(seen, reward, terminated, truncated, ended, final, final_critic_observation=final_critic)

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        random = [one.bit_generator.state for one in self.random[rows]]
        return {"t": self.t[rows].copy(), "cue": self.cue[rows].copy(), "random": random}

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        self.t[rows], self.cue[rows] = state["t"], state["cue"]
        for random, saved in zip(self.random[rows], state["random"], strict=True):
            random.bit_generator.state = saved
        return self.observe()

    @property
    def none(self) -> np.ndarray:
        return np.zeros(self.rows, bool)


class Bandit(Environment, frozen=True):
    """Two arms: the first gives 0.2, the second 1."""

    kind: Literal["tiny-bandit"] = "tiny-bandit"
    implementation: ClassVar[str] = "tests.agents.tiny:BanditRows"
    id: str = "bandit"


class BanditRows(TinyRows):
    size = 1

    def observe(self) -> np.ndarray:
        return np.ones((self.rows, 1), np.float32)

    def outcome(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.array([0.2, 1.0])[actions], ~self.none, self.none


class Throw(Environment, frozen=True):
    """One number is to be said: the best is 0.3."""

    kind: Literal["tiny-throw"] = "tiny-throw"
    implementation: ClassVar[str] = "tests.agents.tiny:ThrowRows"
    id: str = "throw"


class ThrowRows(BanditRows):
    action = Continuous(np.array([-1.0]), np.array([1.0]))

    def outcome(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return -np.square(actions[:, 0].astype(np.float64) - 0.3), ~self.none, self.none


class Chain(Environment, frozen=True):
    """Five states in a row, each known by its observation; whatever is done leads on, and the last step gives 1."""

    kind: Literal["tiny-chain"] = "tiny-chain"
    implementation: ClassVar[str] = "tests.agents.tiny:ChainRows"
    id: str = "chain"


class ChainRows(TinyRows):
    size = 5

    def observe(self) -> np.ndarray:
        return np.eye(6, dtype=np.float32)[self.t, :5]

    def outcome(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        last = self.t == 4
        return last.astype(np.float64), last, self.none


class Endless(Environment, frozen=True):
    """From A to B without reward, then 1 for every step in B; after three steps the episode is cut, or ends."""

    kind: Literal["tiny-endless"] = "tiny-endless"
    implementation: ClassVar[str] = "tests.agents.tiny:EndlessRows"
    id: str = "endless"
    ends: Literal["truncated", "terminated"] = "truncated"


class EndlessRows(TinyRows):
    size = 2

    def observe(self) -> np.ndarray:
        return np.eye(2, dtype=np.float32)[np.minimum(self.t, 1)]

    def outcome(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        reward, last = (self.t > 0).astype(np.float64), self.t == 2
        return (reward, last, self.none) if self.spec.ends == "terminated" else (reward, self.none, last)


class Recall(Environment, frozen=True):
    """A cue is shown at the first step and asked for at the third, when it is seen no more."""

    kind: Literal["tiny-recall"] = "tiny-recall"
    implementation: ClassVar[str] = "tests.agents.tiny:RecallRows"
    id: str = "recall"


class RecallRows(TinyRows):
    size = 2

    def observe(self) -> np.ndarray:
        shown = np.where(self.t == 0, 2.0 * self.cue - 1.0, 0.0)
        return np.stack([shown, self.t == 2], 1).astype(np.float32)

    def outcome(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        last = self.t == 2
        return np.where(last, np.where(actions == self.cue, 1.0, -1.0), 0.0), last, self.none


class Secret(Environment, frozen=True):
    """Every step gives 1 or -1, as a cue says that the policy never sees; after three steps the episode is cut."""

    kind: Literal["tiny-secret"] = "tiny-secret"
    implementation: ClassVar[str] = "tests.agents.tiny:SecretRows"
    id: str = "secret"
    told: bool = True
    """Whether the critic is told the cue."""


class SecretRows(TinyRows):
    size = 1

    def __init__(self, spec: Secret, rows: int, threads: int) -> None:
        super().__init__(spec, rows, threads)
        if spec.told:
            self.spaces = replace(self.spaces, critic_shape=(2,))

    def observe(self) -> np.ndarray:
        return np.ones((self.rows, 1), np.float32)

    @property
    def critic_observation(self) -> np.ndarray | None:
        return np.eye(2, dtype=np.float32)[self.cue] if self.spec.told else None

    def outcome(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return 2.0 * self.cue - 1.0, self.none, self.t == 2
