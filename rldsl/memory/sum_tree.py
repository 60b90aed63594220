"""Sum tree: sample indices in proportion to their priorities in O(log n), for all members at once."""

from __future__ import annotations

import numpy as np

from rldsl.memory.replay_size import FAN_OUT, tree_shapes


class SumTree:
    """Priorities `[M, size]` in float64, initially 0.

    `levels[0]` holds the priorities and `levels[k + 1]` the sums of blocks of `FAN_OUT` entries of `levels[k]`; the
    last level consists of the children of the root. Levels are padded so that, numbering nodes over all members, the
    parent of node i is i // FAN_OUT. Sums are always recomputed from their children, so rounding errors never build up.
    """

    def __init__(self, members: int, size: int) -> None:
        self.levels = [np.zeros(shape) for shape in tree_shapes(members, size)]
        self.size = size
        self._first, self._first_top = (np.arange(members)[:, None] * self.levels[level].shape[1] for level in (0, -1))

    def set(self, index: np.ndarray, priority: np.ndarray) -> None:
        """Set the priorities of `index` `[M, B]`; the last one wins where an index occurs twice."""
        place = index + self._first
        self.levels[0].reshape(-1)[place] = priority
        for lower, upper in zip(self.levels, self.levels[1:], strict=False):
            place = place // FAN_OUT
            upper.reshape(-1)[place] = lower.reshape(-1, FAN_OUT).take(place, 0).sum(-1)

    def get(self, index: np.ndarray) -> np.ndarray:
        """Priorities of `index` `[M, B]`."""
        return self.levels[0].reshape(-1).take(index + self._first)

    def total(self) -> np.ndarray:
        """Sum of each member's priorities, `[M]`. It must be positive for `sample`."""
        return self.levels[-1].cumsum(-1)[:, -1]

    def sample(self, uniform: np.ndarray) -> np.ndarray:
        """Indices `[M, B]` at which the cumulative sum of priorities exceeds `uniform` `[M, B]`, in [0, 1), times the
        total. Indices of priority 0 are never returned."""
        top = self.levels[-1]
        cumulative = top.cumsum(-1)
        mass = _below(uniform * cumulative[:, -1:], cumulative[:, -1:])
        places = [sums.searchsorted(own, "right") for sums, own in zip(cumulative, mass, strict=True)]
        place = np.array(places) + self._first_top
        mass -= cumulative.reshape(-1).take(place) - top.reshape(-1).take(place)
        for level in reversed(self.levels[:-1]):
            place, mass = _descend(level, place, mass)
        return place - self._first

    def restore(self, member: int, priority: np.ndarray) -> None:
        """Set the first priorities of one member, and all others to 0."""
        self.levels[0][member, : len(priority)] = priority
        self.levels[0][member, len(priority) :] = 0.0
        for lower, upper in zip(self.levels, self.levels[1:], strict=False):
            upper[member] = lower[member].reshape(-1, FAN_OUT).sum(-1)


def stratified(uniform: np.ndarray) -> np.ndarray:
    """Stratified sampling: from B uniform numbers `[..., B]`, one in each of B equal parts of [0, 1)."""
    count = uniform.shape[-1]
    spread: np.ndarray = (uniform + np.arange(count)) / count
    return spread


def _descend(level: np.ndarray, place: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From each node to the child in which the cumulative sum exceeds `mass`, and the mass left within that child."""
    block = level.reshape(-1, FAN_OUT).take(place, 0)
    cumulative = block.cumsum(-1)
    mass = _below(mass, cumulative[..., -1])
    child = (cumulative > mass[..., None]).argmax(-1)
    at = np.arange(0, block.size, FAN_OUT).reshape(child.shape) + child
    left = mass - (cumulative.reshape(-1).take(at) - block.reshape(-1).take(at))
    return place * FAN_OUT + child, left


def _below(mass: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Clamp mass to [0, total): rounding may have moved it out, where there is no child."""
    inside: np.ndarray = np.minimum(np.maximum(mass, 0.0), np.nextafter(total, 0.0))
    return inside
