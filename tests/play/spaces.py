"""Gymnasium environments with unusual action spaces."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Shifted(gymnasium.Env[np.ndarray, Any]):
    """Discrete actions 5, 6, 7."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space: spaces.Space[Any] = spaces.Discrete(3, start=5)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.steps = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.steps += 1
        return self._observation(), 1.0, self.steps == 8, False, {}

    def _observation(self) -> np.ndarray:
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)


class Shaped(Shifted):
    """Matrices of actions, with a bound that is infinite."""

    action_space = spaces.Box(
        np.array([[-1, -3], [0, -np.inf]], np.float32), np.array([[1, 5], [0.5, 2]], np.float32), dtype=np.float32
    )
