"""An environment and a schedule of your own in one file: a corridor with a reward at its far end."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from rldsl import A2C, Environment, Schedule, experiment, main
from rldsl.extend import ALL_ROWS, Discrete, Spaces, Step, VectorEnv, value_at


class Corridor(Environment, frozen=True):
    """The spec: what an experiment declares, a plan shows and an id is a hash of."""

    kind: Literal["corridor"] = "corridor"
    implementation: ClassVar[str] = "corridor:make_corridor"
    id: str = "Corridor"
    length: int = Field(default=8, gt=1, description="Cells from one end to the other")

    @property
    def actions(self) -> Literal["discrete"]:
        return "discrete"


def make_corridor(spec: Corridor, rows: int, threads: int) -> "CorridorEnv":
    """What `implementation` names: makes the environment with so many rows, on at most so many threads."""
    return CorridorEnv(spec.length, rows)


class CorridorEnv(VectorEnv):
    """Starts in a random cell of the first half. Action 1 moves on, action 0 back. Every step costs 0.1."""

    exact_resume = True

    def __init__(self, length: int, rows: int) -> None:
        self.length, self.rows = length, rows
        self.spaces = Spaces((1,), np.dtype(np.float32), Discrete(2))

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        self.rngs = [np.random.default_rng(seed) for seed in seeds]
        self.cell, self.steps = np.zeros(self.rows, np.int64), np.zeros(self.rows, np.int64)
        self._begin(np.arange(self.rows))
        return self._observe()

    def step(self, actions: np.ndarray) -> Step:
        self.cell = np.maximum(self.cell + 2 * actions - 1, 0)
        self.steps += 1
        terminated, truncated = self.cell >= self.length - 1, self.steps >= 4 * self.length
        ended = np.flatnonzero(terminated | truncated)
        final = self._observe()[ended]
        self._begin(ended)
        return Step(self._observe(), np.where(terminated, 1.0, -0.1), terminated, truncated, ended, final)

    def _begin(self, rows: np.ndarray) -> None:
        for row in rows.tolist():
            self.cell[row], self.steps[row] = self.rngs[row].integers(self.length // 2), 0

    def _observe(self) -> np.ndarray:
        return (self.cell[:, None] / self.length).astype(np.float32)

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        rngs = [rng.bit_generator.state for rng in self.rngs[rows]]
        return {"cell": self.cell[rows].copy(), "steps": self.steps[rows].copy(), "rngs": rngs}

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        self.cell[rows], self.steps[rows] = state["cell"], state["steps"]
        for rng, saved in zip(self.rngs[rows], state["rngs"], strict=True):
            rng.bit_generator.state = saved
        return self._observe()


class Triangle(Schedule, frozen=True):
    """Rises from 0 to `peak` at half of the session, and falls to 0 again."""

    kind: Literal["triangle"] = "triangle"
    peak: float = Field(kw_only=False, gt=0, description="The highest value")

    def extremes(self) -> tuple[float, ...]:
        return (0.0, self.peak)


@value_at.register
def _(schedule: Triangle, frame: int, frames: int) -> float:
    return schedule.peak * (1 - abs(2 * frame / frames - 1))


corridor = experiment("corridor").env(Corridor(length=6, num_envs=8)).seeds(2).frames(1e4).target(0.6)
a2c = corridor.agent(A2C(lr=Triangle(5e-3)))

if __name__ == "__main__":
    main(a2c)
