"""Storage for the final observations of episodes in a replay buffer: a pool of rows that are reused."""

from __future__ import annotations

import numpy as np

from rldsl.memory.replay_size import final_rows


class FinalObservations:
    """Rows `[R, ...]`, addressed by row number. R doubles when all rows are in use, up to `max_rows`."""

    def __init__(self, max_rows: int, shape: tuple[int, ...], dtype: str) -> None:
        self.max_rows = max_rows
        self.rows = np.zeros((final_rows(0, max_rows), *shape), dtype)
        self.free = np.arange(len(self.rows), dtype=np.int32)
        """Stack of free row numbers; only the first `num_free` entries are valid."""
        self.num_free = len(self.rows)

    def add(self, observation: np.ndarray) -> np.ndarray:
        """Store observations `[k, ...]` and return their row numbers `[k]`."""
        count = len(observation)
        if count > self.num_free:
            self._grow(len(self.rows) - self.num_free + count)
        self.num_free -= count
        numbers = self.free[self.num_free : self.num_free + count].copy()
        self.rows[numbers] = observation
        return numbers

    def remove(self, numbers: np.ndarray) -> None:
        """Free these rows for reuse."""
        self.free[self.num_free : self.num_free + len(numbers)] = numbers
        self.num_free += len(numbers)

    def _grow(self, needed: int) -> None:
        old_size, new_size = len(self.rows), final_rows(needed, self.max_rows)
        rows = np.zeros((new_size, *self.rows.shape[1:]), self.rows.dtype)
        rows[:old_size] = self.rows
        added = new_size - old_size
        free = np.zeros(new_size, np.int32)
        free[: self.num_free] = self.free[: self.num_free]
        free[self.num_free : self.num_free + added] = np.arange(old_size, new_size)
        self.rows, self.free, self.num_free = rows, free, self.num_free + added
