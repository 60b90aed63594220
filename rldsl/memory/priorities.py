"""Prioritized replay (Schaul et al. 2016, arXiv:1511.05952): what surprised is drawn more often, and weighs less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rldsl.memory.sum_tree import SumTree, stratified

EPS = 1e-6


class Priorities:
    """(|TD error| + eps)^alpha of every place of every member; `alpha` is one number a member."""

    def __init__(self, members: int, size: int, alpha: Sequence[float]) -> None:
        self.tree = SumTree(members, size)
        self.alpha = np.asarray(alpha, np.float64).reshape(members, 1)
        self.highest = np.ones((members, 1))
        """The highest so far, `[M, 1]`: what is new is drawn as often as anything, until it has been looked at."""

    def replace(self, index: np.ndarray, gone: np.ndarray) -> None:
        """Places `[P]` of all members have something new, and nothing can be drawn from the places `gone`."""
        members = len(self.highest)
        places = np.broadcast_to(np.concatenate((index, gone)), (members, len(index) + len(gone)))
        priority = np.where(np.arange(places.shape[1]) < len(index), self.highest, 0.0)
        self.tree.set(places, priority)

    def update(self, index: np.ndarray, error: np.ndarray) -> None:
        """Sets the priorities of `index` `[M, B]` by their TD errors `[M, B]`; none is what is not finite."""
        size = np.where(np.isfinite(error), np.abs(error, dtype=np.float64), 0.0)
        priority = (size + EPS) ** self.alpha
        self.tree.set(index, priority)
        np.maximum(self.highest, priority.max(1, keepdims=True), out=self.highest)

    def draw(self, uniform: np.ndarray) -> np.ndarray:
        """Places `[M, K, B]` in proportion to the priorities: each batch of B has one from every B-th of the total."""
        return self.tree.sample(stratified(uniform).reshape(len(uniform), -1)).reshape(uniform.shape)

    def weights(self, index: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """(count * P)^-beta over the largest of each batch, `[M, K, B]`; `beta` is `[M]`.

        Count and total are in every weight of a batch alike: what is left is (lowest priority / priority)^beta.
        """
        priority = self.tree.get(index.reshape(len(index), -1)).reshape(index.shape)
        ratio = priority.min(-1, keepdims=True) / priority
        weight: np.ndarray = ratio ** np.reshape(beta, (-1, 1, 1))
        return weight.astype(np.float32)

    def state(self, member: int, used: int) -> dict[str, Any]:
        """The priorities of the first places of one member, not copied, and the highest so far."""
        return {"priority": self.tree.levels[0][member, :used], "highest": float(self.highest[member, 0])}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """One member goes on as it was."""
        self.tree.restore(member, state["priority"])
        self.highest[member] = state["highest"]
