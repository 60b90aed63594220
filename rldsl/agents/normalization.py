"""Running normalisation of observations and rewards, with separate statistics for every member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rldsl.agents.base import AgentContext
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
    """Normalises what the spec's `normalize_observations` and `normalize_rewards` ask for; otherwise the identity."""

    def __init__(self, spec: Any, context: AgentContext) -> None:
        members, num_envs = context.members, context.num_envs
        self.shape = (members, num_envs)
        self.gamma = np.array([member.gamma for member in context.specs])  # type: ignore[attr-defined]
        shape, critic_shape = context.spaces.observation_shape, context.spaces.critic_shape
        observations = getattr(spec, "normalize_observations", False)
        rewards = getattr(spec, "normalize_rewards", False)
        self.observations: State | None = moments_state(members, shape) if observations else None
        self.critic_observations: State | None = (
            moments_state(members, critic_shape) if observations and critic_shape is not None else None
        )
        self.rewards: State | None = reward_scale_state(members, num_envs) if rewards else None

    def update_and_normalize(self, observation: np.ndarray) -> np.ndarray:
        """Update the statistics with observations `[M, N, ...]`, then normalise them."""
        if self.observations is None:
            return observation
        self.observations = update_moments(self.observations, observation)
        return normalize(self.observations, observation)

    def update_and_normalize_critic(self, observation: np.ndarray) -> np.ndarray:
        """The same for the critic's own observations."""
        if self.critic_observations is None:
            return observation
        self.critic_observations = update_moments(self.critic_observations, observation)
        return normalize(self.critic_observations, observation)

    def normalize(self, observation: np.ndarray) -> np.ndarray:
        """Normalise observations `[M, B, ...]` with the current statistics."""
        return _normalize(self.observations, observation)

    def normalize_critic(self, observation: np.ndarray) -> np.ndarray:
        """The same for the critic's observations, its own or those it shares with the policy."""
        return _normalize(self.critic_observations or self.observations, observation)

    def normalize_finals(self, step: Step) -> Step:
        """The step with its final observations normalised by the current statistics, those of the step itself.

        Later statistics would give the value of a truncated episode's end another scale than that of its last steps.
        """
        if not step.ended.size:
            return step
        member = step.ended // self.shape[1]
        final = _normalize_rows(self.observations, step.final_observation, member)
        if step.final_critic_observation is None:
            return step._replace(final_observation=final)
        critic_final = _normalize_rows(self.critic_observations, step.final_critic_observation, member)
        return step._replace(final_observation=final, final_critic_observation=critic_final)

    def scale_reward(self, step: Step) -> np.ndarray:
        """Rewards `[M, N]` divided by the standard deviation of the discounted return."""
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
        """Load one member's statistics."""
        for name, state in saved.items():
            for key, array in (state or {}).items():
                getattr(self, name)[key][member] = array


def _normalize(state: State | None, observation: np.ndarray) -> np.ndarray:
    if state is not None:
        return normalize(state, observation)
    return observation if observation.dtype == np.uint8 else observation.astype(np.float32)


def _normalize_rows(state: State | None, observation: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Normalise observations `[K, ...]`, each by the statistics of its `member` `[K]`."""
    rows = None if state is None else {name: array[member] for name, array in state.items()}
    return _normalize(rows, observation[:, None])[:, 0]


def _row(state: State | None, member: int) -> dict[str, np.ndarray] | None:
    return None if state is None else {name: np.array(array[member]) for name, array in state.items()}
