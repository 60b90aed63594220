"""The last observations of episodes: few beside all others, so they have rows of their own, used again and again."""

from __future__ import annotations

import numpy as np

from rldsl.maths.replay_size import final_rows


class Finals:
    """Rows `[R, ...]` by number; their number doubles when they are full, up to `most`."""

    def __init__(self, most: int, shape: tuple[int, ...], dtype: str) -> None:
        self.most = most
        self.rows = np.zeros((final_rows(0, most), *shape), dtype)
        self.unused = np.arange(len(self.rows), dtype=np.int32)
        self.left = len(self.rows)
        """How many of `unused`, from its beginning, are unused."""

    def keep(self, observation: np.ndarray) -> np.ndarray:
        """Keeps `[k, ...]` observations; returns the numbers of their rows."""
        if len(observation) > self.left:
            self._grow(len(self.rows) - self.left + len(observation))
        self.left -= len(observation)
        numbers = self.unused[self.left : self.left + len(observation)].copy()
        self.rows[numbers] = observation
        return numbers

    def release(self, numbers: np.ndarray) -> None:
        """Their rows can be used again."""
        self.unused[self.left : self.left + len(numbers)] = numbers
        self.left += len(numbers)

    def _grow(self, used: int) -> None:
        before, after = len(self.rows), final_rows(used, self.most)
        rows = np.zeros((after, *self.rows.shape[1:]), self.rows.dtype)
        rows[:before] = self.rows
        unused = np.zeros(after, np.int32)
        unused[: self.left] = self.unused[: self.left]
        unused[self.left : self.left + after - before] = np.arange(before, after)
        self.rows, self.unused, self.left = rows, unused, self.left + after - before
