"""Proportional prioritization of a replay buffer (Schaul et al. 2016, arXiv:1511.05952)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rldsl.memory.sum_tree import SumTree, stratified

EPS = 1e-6


class Priorities:
    """Priorities p = (|TD error| + eps)^alpha of every transition of every member, with one `alpha` per member."""

    def __init__(self, members: int, size: int, alpha: Sequence[float]) -> None:
        self.tree = SumTree(members, size)
        self.alpha = np.asarray(alpha, np.float64).reshape(members, 1)
        self.highest = np.ones((members, 1))
        """The highest priority so far, `[M, 1]`: that of a new transition until its TD error is known."""

    def replace(self, index: np.ndarray, removed: np.ndarray) -> None:
        """Give new transitions `index` `[K]` of all members the highest priority, and those `removed` priority 0."""
        members = len(self.highest)
        places = np.broadcast_to(np.concatenate((index, removed)), (members, len(index) + len(removed)))
        priority = np.where(np.arange(places.shape[1]) < len(index), self.highest, 0.0)
        self.tree.set(places, priority)

    def update(self, index: np.ndarray, error: np.ndarray) -> None:
        """Set the priorities of `index` `[M, B]` from their TD errors `[M, B]`; an error that is not finite is 0."""
        size = np.where(np.isfinite(error), np.abs(error, dtype=np.float64), 0.0)
        priority = (size + EPS) ** self.alpha
        self.tree.set(index, priority)
        np.maximum(self.highest, priority.max(1, keepdims=True), out=self.highest)

    def sample(self, uniform: np.ndarray) -> np.ndarray:
        """Indices `[M, K, B]` with probability p_i / sum(p), stratified within each batch of B."""
        return self.tree.sample(stratified(uniform).reshape(len(uniform), -1)).reshape(uniform.shape)

    def weights(self, index: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Importance weights (n P_i)^-beta divided by the largest of each batch, `[M, K, B]`, with `beta` `[M]`.

        n and the total priority cancel out: the weight is (lowest priority of the batch / priority)^beta.
        """
        priority = self.tree.get(index.reshape(len(index), -1)).reshape(index.shape)
        ratio = priority.min(-1, keepdims=True) / priority
        weight: np.ndarray = ratio ** np.reshape(beta, (-1, 1, 1))
        return weight.astype(np.float32)

    def state(self, member: int, used: int) -> dict[str, Any]:
        """A view of the first `used` priorities of one member, and its highest priority so far."""
        return {"priority": self.tree.levels[0][member, :used], "highest": float(self.highest[member, 0])}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """Load what `state` returned for one member."""
        self.tree.restore(member, state["priority"])
        self.highest[member] = state["highest"]
