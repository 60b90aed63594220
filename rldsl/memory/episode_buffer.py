"""Prioritized buffer of finished episodes with their returns, for self-imitation learning (Oh et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

ARRAYS = ("observation", "action", "returns", "priority")
EPS = 1e-6


class EpisodeBuffer:
    """Ring of the transitions of one member's finished episodes, sampled in proportion to their priority."""

    def __init__(self, size: int, observation: tuple[int, ...], dtype: Any, action: tuple[int, ...]) -> None:
        self.observation = np.zeros((size, *observation), dtype)
        self.action = np.zeros((size, *action), np.float32 if action else np.int64)
        self.returns = np.zeros(size, np.float32)
        self.priority = np.zeros(size, np.float64)
        self.size, self.filled, self.next = size, 0, 0

    def add(self, observation: np.ndarray, action: np.ndarray, returns: np.ndarray) -> None:
        """Add an episode. Its transitions get the highest priority so far, so that each is soon sampled."""
        count = min(len(returns), self.size)
        index = (self.next + np.arange(count)) % self.size
        self.observation[index], self.action[index] = observation[-count:], action[-count:]
        self.returns[index] = returns[-count:]
        self.priority[index] = max(self.priority[: self.filled].max(initial=0.0), 1.0)
        self.next = int((self.next + count) % self.size)
        self.filled = min(self.filled + count, self.size)

    def sample(self, rng: np.random.Generator, count: int, beta: float) -> tuple[np.ndarray, np.ndarray]:
        """Indices with probability P_i proportional to priority, and importance weights (n P_i)^-beta / max."""
        cumulative = np.cumsum(self.priority[: self.filled])
        index = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
        index = np.minimum(index, self.filled - 1)
        probability = self.priority[index] / cumulative[-1]
        weight = (self.filled * probability) ** -beta
        return index, (weight / weight.max()).astype(np.float32)

    def prioritize(self, index: np.ndarray, advantage: np.ndarray, alpha: float) -> None:
        """Set the priorities to (max(R - V, 0) + eps)^alpha."""
        self.priority[index] = (np.maximum(advantage, 0.0) + EPS) ** alpha

    def state(self) -> dict[str, Any]:
        """The filled part of the buffer, for a checkpoint."""
        used = {name: getattr(self, name)[: self.filled].copy() for name in ARRAYS}
        return used | {"filled": self.filled, "next": self.next}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what `state` returned."""
        self.filled, self.next = state["filled"], state["next"]
        for name in ARRAYS:
            getattr(self, name)[: self.filled] = state[name]
