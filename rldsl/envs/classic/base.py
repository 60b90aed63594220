"""Base class of the classic control tasks: time limits, autoreset, RNGs, saving and restoring."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rldsl.envs.contract import ALL_ROWS, Continuous, Discrete, EnvError, Spaces, Step, VectorEnv


def classic_spaces(observation_size: int, action: Discrete | Continuous) -> Spaces:
    return Spaces((observation_size,), np.dtype(np.float32), action)


class ClassicEnv(VectorEnv):
    """A batch of a classic control task; each row is bit-identical to `gymnasium.make(id)` with the row's seed.

    Subclasses implement the dynamics. `_state` is [variables, rows], so that `x, x_dot, theta, theta_dot =
    self._state` gives one vector per variable.
    """

    exact_resume = True
    time_limit: ClassVar[int]
    """Steps after which Gymnasium's registered TimeLimit truncates an episode."""
    variables: ClassVar[int]
    """Number of state variables."""

    def __init__(self, rows: int) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.rows = rows
        self._state = np.zeros((self.variables, rows))
        self._steps = np.zeros(rows, np.int64)
        self._rngs: list[np.random.Generator] = []
        self._observation = np.zeros((rows, *self.spaces.observation_shape), np.float32)
        self._reward = np.zeros(rows)
        self._terminated = np.zeros(rows, bool)
        self._truncated = np.zeros(rows, bool)

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> np.ndarray:
        """Samples an initial state like Gymnasium, in the dtype from which Gymnasium computes the observation."""

    @abstractmethod
    def _advance(self, actions: np.ndarray) -> None:
        """Advances `_state` by one step in place and sets `_reward` and `_terminated`."""

    def _observe(self, state: np.ndarray, observation: np.ndarray) -> None:
        """Writes the observation of a state; the variables are the first axis of both."""
        observation[...] = state

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        self._rngs = [np.random.Generator(np.random.PCG64(seed)) for seed in self._checked_seeds(seeds)]
        for row in range(self.rows):
            self._begin(row)
        return self._observation

    def step(self, actions: np.ndarray) -> Step:
        self._advance(actions)
        self._steps += 1
        np.greater_equal(self._steps, self.time_limit, out=self._truncated)
        self._observe(self._state, self._observation.T)
        ended = (self._terminated | self._truncated).nonzero()[0]
        final_observation = self._observation[ended]
        for row in ended.tolist():
            self._begin(row)
        return Step(self._observation, self._reward, self._terminated, self._truncated, ended, final_observation)

    def _begin(self, row: int) -> None:
        start = self._draw(self._rngs[row])
        self._state[:, row] = start
        self._steps[row] = 0
        self._observe(start, self._observation[row])

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        return {
            "variables": self._state[:, rows].copy(),
            "steps": self._steps[rows].copy(),
            "observation": self._observation[rows].copy(),
            "rngs": [rng.bit_generator.state for rng in self._rngs[rows]],
        }

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        saved, here = state["variables"].shape[1], len(range(*rows.indices(self.rows)))
        if saved != here:
            raise EnvError(f"The saved state has {saved} rows, to be restored into {here}.")
        self._rngs = self._rngs or [np.random.default_rng() for _ in range(self.rows)]
        self._state[:, rows] = state["variables"]
        self._steps[rows] = state["steps"]
        self._observation[rows] = state["observation"]
        self._rngs[rows] = [_generator(rng_state) for rng_state in state["rngs"]]
        return self._observation


def _generator(state: Any) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)
