"""Evaluation: episodes without learning, in environments of their own, every so many frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rldsl.agents.base import Learner
from rldsl.envs.seeding import row_seeds
from rldsl.spec.budget import Evaluation
from rldsl.spec.environment import Environment
from rldsl.spec.implementation import implementation

EVALUATION_COLUMNS = ("eval_return", "eval_length")
"""Columns of metrics.csv: mean return and mean length of the latest evaluation's episodes."""


class Evaluator:
    """Plays one episode in each of `episodes` environments per member. The n-th evaluation has its own seeds."""

    def __init__(self, spec: Evaluation, env: Environment, seeds: Sequence[int], threads: int) -> None:
        self.spec, self.env, self.seeds, self.threads = spec, env, list(seeds), threads
        self.done = 0
        self.results = np.full((len(EVALUATION_COLUMNS), len(seeds)), np.nan)

    def maybe_evaluate(self, agent: Learner, frame: int) -> None:
        """Evaluates once if `frame` has passed a multiple of `every` since the last evaluation."""
        if frame // self.spec.every > self.done:
            self.done = frame // self.spec.every
            self.results = self._evaluate(agent)

    def metrics(self, member: int) -> dict[str, float]:
        """A member's latest results, NaN before the first evaluation."""
        return dict(zip(EVALUATION_COLUMNS, map(float, self.results[:, member]), strict=True))

    def _evaluate(self, agent: Learner) -> np.ndarray:
        """Mean return and mean length of the episodes, `[2, M]`."""
        members, episodes = len(self.seeds), self.spec.episodes
        envs = implementation(self.env)(self.env, members * episodes, self.threads)
        seeds = [row for seed in self.seeds for row in row_seeds(seed, episodes, f"evaluate {self.done}")]
        policy = agent.policy(episodes, self.spec.deterministic, [seed + self.done for seed in self.seeds])
        observation = envs.reset(seeds)
        returns, lengths = np.zeros(envs.rows), np.zeros(envs.rows)
        playing, starts = np.ones(envs.rows, bool), np.ones((members, episodes), bool)
        while playing.any():
            actions = policy(observation.reshape(members, episodes, *observation.shape[1:]), starts)
            step = envs.step(actions.reshape(-1, *actions.shape[2:]))
            ended = step.terminated | step.truncated
            returns += step.reward * playing
            lengths += playing
            playing &= ~ended
            observation, starts = step.observation, ended.reshape(members, episodes)
        envs.close()
        return np.stack([values.reshape(members, episodes).mean(1) for values in (returns, lengths)])

    def state(self, member: int) -> dict[str, Any]:
        """What a resumed session needs: which evaluations are done, and the latest results."""
        return {"done": self.done, "results": self.results[:, member].copy()}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """Continues from a saved state."""
        self.done = state["done"]
        self.results[:, member] = state["results"]
