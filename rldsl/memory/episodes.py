"""Whole episodes with their returns, sampled by how much better they were than thought (Oh et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

ARRAYS = ("observation", "action", "returns", "priority")


class EpisodeMemory:
    """Transitions of finished episodes, of one member, the oldest overwritten first; sampled by priority."""

    def __init__(self, size: int, observation: tuple[int, ...], dtype: Any, action: tuple[int, ...]) -> None:
        self.observation = np.zeros((size, *observation), dtype)
        self.action = np.zeros((size, *action), np.float32 if action else np.int64)
        self.returns = np.zeros(size, np.float32)
        self.priority = np.zeros(size, np.float64)
        self.size, self.filled, self.next = size, 0, 0

    def add(self, observation: np.ndarray, action: np.ndarray, returns: np.ndarray) -> None:
        """An episode; it is as likely as the likeliest so far until it has been looked at."""
        count = min(len(returns), self.size)
        where = (self.next + np.arange(count)) % self.size
        self.observation[where], self.action[where] = observation[-count:], action[-count:]
        self.returns[where] = returns[-count:]
        self.priority[where] = max(self.priority[: self.filled].max(initial=0.0), 1.0)
        self.next = int((self.next + count) % self.size)
        self.filled = min(self.filled + count, self.size)

    def sample(self, random: np.random.Generator, count: int, beta: float) -> tuple[np.ndarray, np.ndarray]:
        """Indices drawn in proportion to their priority, and importance weights whose largest is 1."""
        cumulative = np.cumsum(self.priority[: self.filled])
        index = np.searchsorted(cumulative, random.random(count) * cumulative[-1], side="right")
        index = np.minimum(index, self.filled - 1)
        probability = self.priority[index] / cumulative[-1]
        weight = (self.filled * probability) ** -beta
        return index, (weight / weight.max()).astype(np.float32)

    def prioritize(self, index: np.ndarray, advantage: np.ndarray, alpha: float) -> None:
        """Priority (max(R - V, 0) + eps)^alpha."""
        self.priority[index] = (np.maximum(advantage, 0.0) + 1e-6) ** alpha

    def state(self) -> dict[str, Any]:
        """What is in use of it."""
        used = {name: getattr(self, name)[: self.filled].copy() for name in ARRAYS}
        return used | {"filled": self.filled, "next": self.next}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on as it was."""
        self.filled, self.next = state["filled"], state["next"]
        for name in ARRAYS:
            getattr(self, name)[: self.filled] = state[name]
