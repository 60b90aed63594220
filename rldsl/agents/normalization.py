"""Running normalisation of what a pack observes and of its rewards; each member has statistics of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rldsl.agents.contract import AgentContext
from rldsl.envs.contract import Step
from rldsl.maths.normalizers import (
    State,
    moments_state,
    normalize,
    reward_scale_state,
    scale_reward,
    update_moments,
    update_reward_scale,
)

STATISTICS = ("observations", "critic_observations", "rewards")


class Normalization:
    """Does nothing where the spec asks for nothing."""

    def __init__(self, spec: Any, context: AgentContext) -> None:
        members, num_envs = context.members, context.num_envs
        self.shape = (members, num_envs)
        self.gamma = np.array([one.gamma for one in context.specs])  # type: ignore[attr-defined]
        shape, own = context.spaces.observation_shape, context.spaces.critic_shape
        seen, scaled = (getattr(spec, f"normalize_{what}", False) for what in ("observations", "rewards"))
        self.observations: State | None = moments_state(members, shape) if seen else None
        self.critic_observations: State | None = moments_state(members, own) if seen and own is not None else None
        self.rewards: State | None = reward_scale_state(members, num_envs) if scaled else None

    def observe(self, observation: np.ndarray) -> np.ndarray:
        """Takes observations `[M, N, ...]` into the statistics and normalises them."""
        if self.observations is None:
            return observation
        self.observations = update_moments(self.observations, observation)
        return normalize(self.observations, observation)

    def observe_as_critic(self, observation: np.ndarray) -> np.ndarray:
        """The same with observations that are the critic's own."""
        if self.critic_observations is None:
            return observation
        self.critic_observations = update_moments(self.critic_observations, observation)
        return normalize(self.critic_observations, observation)

    def look(self, observation: np.ndarray) -> np.ndarray:
        """Normalises observations `[M, B, ...]` that are not to be counted."""
        return _look(self.observations, observation)

    def look_as_critic(self, observation: np.ndarray) -> np.ndarray:
        """The same with what the critic sees, be it its own or the policy's."""
        return _look(self.critic_observations or self.observations, observation)

    def reward(self, step: Step) -> np.ndarray:
        """The rewards of a step as they are learned from, `[M, N]`."""
        reward = step.reward.reshape(self.shape)
        if self.rewards is None:
            return reward
        ended = (step.terminated | step.truncated).reshape(self.shape)
        self.rewards = update_reward_scale(self.rewards, reward, ended, self.gamma)
        return scale_reward(self.rewards, reward)

    def save(self, member: int) -> dict[str, Any]:
        """One member's statistics."""
        return {name: _row(getattr(self, name), member) for name in STATISTICS}

    def load(self, member: int, saved: Mapping[str, Any]) -> None:
        """Goes on from one member's statistics."""
        for name, state in saved.items():
            for key, array in (state or {}).items():
                getattr(self, name)[key][member] = array


def _look(state: State | None, observation: np.ndarray) -> np.ndarray:
    if state is not None:
        return normalize(state, observation)
    return observation if observation.dtype == np.uint8 else observation.astype(np.float32)


def _row(state: State | None, member: int) -> dict[str, np.ndarray] | None:
    return None if state is None else {name: np.array(array[member]) for name, array in state.items()}
