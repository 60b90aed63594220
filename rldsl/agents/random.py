"""Uniformly random actions: the baseline that every score is measured from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rldsl.agents.contract import AgentContext, Learner, Policy, World
from rldsl.envs.contract import Discrete
from rldsl.maths.streams import restore_stream, stream, stream_state


class RandomAgent(Learner):
    """Acts uniformly at random; learns nothing."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        self.streams = [stream(seed, "act") for seed in context.seeds]

    def iterate(self, world: World) -> None:
        world.step(np.concatenate([self._actions(one, self.context.num_envs) for one in self.streams]))

    def _actions(self, random: np.random.Generator, num_envs: int) -> np.ndarray:
        action = self.context.spaces.action
        if isinstance(action, Discrete):
            return random.integers(action.n, size=num_envs)
        return random.uniform(-1.0, 1.0, (num_envs, *action.shape))

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        streams = [stream(seed, "evaluate") for seed in seeds]
        return lambda observation, starts: np.stack([self._actions(one, num_envs) for one in streams])

    def state(self, member: int) -> dict[str, Any]:
        return {"stream": stream_state(self.streams[member])}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        restore_stream(self.streams[member], state["stream"])
