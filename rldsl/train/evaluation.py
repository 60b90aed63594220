"""Episodes without learning, on environments of their own, every so many frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rldsl.agents.base import Learner
from rldsl.envs.seeding import row_seeds
from rldsl.spec.budget import Evaluation
from rldsl.spec.environment import Environment
from rldsl.spec.implementation import implementation

EVALUATED = ("eval_return", "eval_length")


class Evaluator:
    """Plays one episode in each of `episodes` environments a member; the n-th evaluation has seeds of its own."""

    def __init__(self, spec: Evaluation, env: Environment, seeds: Sequence[int], threads: int) -> None:
        self.spec, self.env, self.seeds, self.threads = spec, env, list(seeds), threads
        self.done = 0
        self.results = np.full((len(EVALUATED), len(seeds)), np.nan)

    def look(self, agent: Learner, frame: int) -> None:
        """Evaluates if it is due."""
        if frame // self.spec.every > self.done:
            self.done = frame // self.spec.every
            self.results = self._play(agent)

    def metrics(self) -> dict[str, np.ndarray]:
        """The latest results, `[M]` each."""
        return dict(zip(EVALUATED, self.results, strict=True))

    def _play(self, agent: Learner) -> np.ndarray:
        members, count = len(self.seeds), self.spec.episodes
        envs = implementation(self.env)(self.env, members * count, self.threads)
        seeds = [row for seed in self.seeds for row in row_seeds(seed, count, f"evaluate {self.done}")]
        policy = agent.policy(count, self.spec.deterministic, [seed + self.done for seed in self.seeds])
        observation = envs.reset(seeds)
        returns, lengths = np.zeros(envs.rows), np.zeros(envs.rows)
        playing, starts = np.ones(envs.rows, bool), np.ones((members, count), bool)
        while playing.any():
            actions = policy(observation.reshape(members, count, *observation.shape[1:]), starts)
            step = envs.step(actions.reshape(-1, *actions.shape[2:]))
            returns += step.reward * playing
            lengths += playing
            playing &= ~(step.terminated | step.truncated)
            observation, starts = step.observation, (step.terminated | step.truncated).reshape(members, count)
        envs.close()
        return np.stack([one.reshape(members, count).mean(1) for one in (returns, lengths)])

    def state(self, member: int) -> dict[str, Any]:
        """What later log points depend on."""
        return {"done": self.done, "results": self.results[:, member].copy()}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """Goes on as it was."""
        self.done = state["done"]
        self.results[:, member] = state["results"]
