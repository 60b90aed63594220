"""Rollout buffer: T vector steps of every member, collected with the current policy and then learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rldsl.envs.contract import Spaces, Step


@dataclass(frozen=True)
class Truncations:
    """Steps at which a time limit truncated an episode, with the (normalised) true final observations of episodes."""

    step: np.ndarray
    member: np.ndarray
    env: np.ndarray
    observation: np.ndarray
    critic_observation: np.ndarray
    """The critic's own observation, or `observation` if it has none."""

    def __len__(self) -> int:
        return len(self.step)


class _TruncatedRows(NamedTuple):
    """The rows that were truncated at one step."""

    step: int
    rows: np.ndarray
    observation: np.ndarray
    critic_observation: np.ndarray


class RolloutBuffer:
    """Arrays `[T, M, N, ...]`, written one vector step at a time and read as tensors `[M, T, N, ...]`."""

    def __init__(self, steps: int, members: int, num_envs: int, spaces: Spaces, action: tuple[int, ...]) -> None:
        rows = (steps, members, num_envs)
        dtype = np.uint8 if spaces.observation_dtype == np.uint8 else np.float32
        self.observation = np.zeros((*rows, *spaces.observation_shape), dtype)
        critic_shape = spaces.critic_shape
        self.critic_observation = None if critic_shape is None else np.zeros((*rows, *critic_shape), np.float32)
        self.action = np.zeros((*rows, *action), np.float32 if action else np.int64)
        self.reward = np.zeros(rows, np.float32)
        self.terminated = np.zeros(rows, bool)
        self.ended = np.zeros(rows, bool)
        self.starts = np.zeros(rows, bool)
        self.steps, self.members, self.num_envs = rows
        self._truncated: list[_TruncatedRows] = []

    def clear(self) -> None:
        """Start a new rollout: drop the truncations of the last one. Everything else is overwritten step by step."""
        self._truncated = []

    def write(self, t: int, step: Step, reward: np.ndarray) -> None:
        """Write the outcome of step t; the caller writes observation and action itself."""
        shape = (self.members, self.num_envs)
        self.reward[t] = reward
        self.terminated[t] = step.terminated.reshape(shape)
        np.logical_or(step.terminated, step.truncated, out=self.ended[t].reshape(-1))
        if step.ended.size:
            truncated = ~step.terminated[step.ended]
            if truncated.any():
                final = critic_final = step.final_observation[truncated]
                if step.final_critic_observation is not None:
                    critic_final = step.final_critic_observation[truncated]
                self._truncated.append(_TruncatedRows(t, step.ended[truncated], final, critic_final))

    def truncations(self) -> Truncations:
        """The truncations of this rollout: their final observations are what to bootstrap from."""
        rows = _concatenate([at.rows for at in self._truncated])
        observation = _concatenate([at.observation for at in self._truncated])
        return Truncations(
            step=_concatenate([np.full(len(at.rows), at.step) for at in self._truncated]),
            member=rows // self.num_envs,
            env=rows % self.num_envs,
            observation=observation,
            critic_observation=observation
            if self.critic_observation is None
            else _concatenate([at.critic_observation for at in self._truncated]),
        )

    def tensor(self, name: str, device: torch.device) -> Tensor:
        """The array `name` as a tensor `[M, T, N, ...]`."""
        return torch.from_numpy(getattr(self, name)).transpose(0, 1).to(device).contiguous()


def _concatenate(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
