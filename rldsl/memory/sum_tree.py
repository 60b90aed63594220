"""A sum tree over all members at once: draws in proportion to priorities, without looking at most of them."""

from __future__ import annotations

import numpy as np

from rldsl.maths.replay_size import FAN, tree_shapes


class SumTree:
    """Priorities `[M, size]` in float64, all 0 at first. Sums are always made anew from their parts: they never drift.

    `levels[0]` are the priorities, `levels[k + 1]` the sums of blocks of `FAN` of `levels[k]`; the last level lies
    below the root. They are padded so that a node's parent, counted over all members, is its own number over `FAN`.
    """

    def __init__(self, members: int, size: int) -> None:
        self.levels = [np.zeros(shape) for shape in tree_shapes(members, size)]
        self.size = size
        self._first, self._first_top = (np.arange(members)[:, None] * self.levels[level].shape[1] for level in (0, -1))

    def set(self, index: np.ndarray, priority: np.ndarray) -> None:
        """Sets the priorities of `index` `[M, B]` to `[M, B]`; of one that is there twice, to the last."""
        place = index + self._first
        self.levels[0].reshape(-1)[place] = priority
        for lower, upper in zip(self.levels, self.levels[1:], strict=False):
            place = place // FAN
            upper.reshape(-1)[place] = lower.reshape(-1, FAN).take(place, 0).sum(-1)

    def get(self, index: np.ndarray) -> np.ndarray:
        """The priorities of `index` `[M, B]`."""
        return self.levels[0].reshape(-1).take(index + self._first)

    def total(self) -> np.ndarray:
        """The sum of each member's priorities, `[M]`, which must be positive for it to be sampled."""
        return self.levels[-1].cumsum(-1)[:, -1]

    def sample(self, uniform: np.ndarray) -> np.ndarray:
        """The index `[M, B]` at which each member's cumulative sum passes that share of its total, `[M, B]` in [0, 1).

        What has priority 0 is never drawn.
        """
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
        """Sets the first priorities of one member, and all the others to 0."""
        self.levels[0][member, : len(priority)] = priority
        self.levels[0][member, len(priority) :] = 0.0
        for lower, upper in zip(self.levels, self.levels[1:], strict=False):
            upper[member] = lower[member].reshape(-1, FAN).sum(-1)


def stratified(uniform: np.ndarray) -> np.ndarray:
    """Uniform numbers `[..., B]`, one in each of B equal parts of [0, 1): fewer repeats, the same shares."""
    count = uniform.shape[-1]
    spread: np.ndarray = (uniform + np.arange(count)) / count
    return spread


def _descend(level: np.ndarray, place: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From a node to the child in which the cumulative sum passes `mass`, and what of the mass is left there."""
    block = level.reshape(-1, FAN).take(place, 0)
    cumulative = block.cumsum(-1)
    mass = _below(mass, cumulative[..., -1])
    child = (cumulative > mass[..., None]).argmax(-1)
    at = np.arange(0, block.size, FAN).reshape(child.shape) + child
    left = mass - (cumulative.reshape(-1).take(at) - block.reshape(-1).take(at))
    return place * FAN + child, left


def _below(mass: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Rounding may have carried a mass to the total or below 0, where no child is."""
    inside: np.ndarray = np.minimum(np.maximum(mass, 0.0), np.nextafter(total, 0.0))
    return inside
