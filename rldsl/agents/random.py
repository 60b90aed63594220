"""Uniformly random actions: the baseline from which scores are measured."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rldsl.agents.base import AgentContext, Learner, Policy, World
from rldsl.envs.contract import Discrete
from rldsl.maths.streams import restore_stream, stream, stream_state


class RandomAgent(Learner):
    """Acts uniformly at random and learns nothing."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        self.rngs = [stream(seed, "act") for seed in context.seeds]

    def iterate(self, world: World) -> None:
        world.step(np.concatenate([self._sample(rng, self.context.num_envs) for rng in self.rngs]))

    def _sample(self, rng: np.random.Generator, num_envs: int) -> np.ndarray:
        action = self.context.spaces.action
        if isinstance(action, Discrete):
            return rng.integers(action.n, size=num_envs)
        return rng.uniform(-1.0, 1.0, (num_envs, *action.shape))

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        rngs = [stream(seed, "evaluate") for seed in seeds]
        return lambda observation, starts: np.stack([self._sample(rng, num_envs) for rng in rngs])

    def state(self, member: int) -> dict[str, Any]:
        return {"stream": stream_state(self.rngs[member])}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        restore_stream(self.rngs[member], state["stream"])
