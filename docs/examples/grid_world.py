"""A Gymnasium environment and a wrapper of your own: find the way over a grid to a goal at a random place."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

MOVES = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
PIXELS = 32


class GridWorld(gymnasium.Env):
    """Reward 1 at the goal. A step that would leave the grid has no effect."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}

    def __init__(self, size: int = 5, render_mode: str | None = None) -> None:
        self.size, self.render_mode = size, render_mode
        cell = spaces.MultiDiscrete([size, size])
        self.observation_space = spaces.Dict({"here": cell, "goal": cell})
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        here, goal = self.np_random.choice(self.size**2, 2, replace=False)
        self.here, self.goal = (np.array(divmod(one, self.size)) for one in (here, goal))
        return self._observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.here = np.clip(self.here + MOVES[action], 0, self.size - 1)
        found = bool((self.here == self.goal).all())
        distance = int(abs(self.here - self.goal).sum())
        return self._observe(), float(found), found, False, {"distance": distance}

    def render(self) -> np.ndarray:
        picture = np.full((self.size, self.size, 3), 230, np.uint8)
        picture[tuple(self.goal)], picture[tuple(self.here)] = (60, 160, 60), (60, 60, 200)
        return picture.repeat(PIXELS, 0).repeat(PIXELS, 1)

    def get_state(self) -> dict[str, Any]:
        return {"here": self.here, "goal": self.goal}

    def set_state(self, state: dict[str, Any]) -> None:
        self.here, self.goal = state["here"], state["goal"]

    def _observe(self) -> dict[str, np.ndarray]:
        return {"here": self.here, "goal": self.goal}


class Hurry(gymnasium.RewardWrapper):
    """Every step costs `cost`."""

    def __init__(self, env: gymnasium.Env, cost: float = 0.01) -> None:
        super().__init__(env)
        self.cost = cost

    def reward(self, reward: Any) -> float:
        return float(reward) - self.cost


gymnasium.register("GridWorld-v0", entry_point=GridWorld, max_episode_steps=40)
