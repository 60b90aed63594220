"""Gymnasium environments with a state of their own, numbers in `info`, or values that are not finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env[np.ndarray, int]):
    """A random walk that the action pushes; it ends beyond 3, and its info says on which side."""

    observation_space = spaces.Box(-10, 10, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.position, self.hidden = self.np_random.normal(size=2)
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.hidden = np.sin(3 * self.hidden) + 0.1 * self.np_random.normal()
        self.position += 0.3 * (2 * action - 1) + 0.2 * self.hidden
        over = abs(self.position) > 3
        info = {"success": bool(self.position > 3), "distance": abs(self.position), "side": "right"}
        return self._observation(), float(self.position), bool(over), False, info

    def _observation(self) -> np.ndarray:
        return np.array([self.position, np.sign(self.hidden)], np.float32)


class SavedWalk(Walk):
    """Without its RNG, which is saved for it."""

    def get_state(self) -> dict[str, Any]:
        return {"position": float(self.position), "hidden": np.float64(self.hidden)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.position, self.hidden = state["position"], state["hidden"]


class Broken(Walk):
    """After three steps, a reward or an observation is not finite."""

    def __init__(self, what: str = "reward") -> None:
        self.what = what

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        self.steps = 0
        return super().reset(**options)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        observation, reward, *rest = super().step(action)
        self.steps += 1
        if self.steps == 3:
            observation[0], reward = (np.inf, reward) if self.what == "observation" else (observation[0], np.nan)
        return observation, reward, *rest  # type: ignore[return-value]


class Momentum(gymnasium.Wrapper):
    """Repeats the sign of the last reward; it has a state, and saves it."""

    last = 0.0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        total, self.last = float(reward) + self.last, float(np.sign(reward))
        return observation, total, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        return {"last": self.last}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.last = state["last"]


class Forgetful(gymnasium.Wrapper):
    """A wrapper of which nobody knows whether it has a state."""
