"""A rollout: what every environment of every member showed and got over T steps, written once and read as a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rldsl.envs.contract import Spaces, Step


@dataclass(frozen=True)
class Truncations:
    """Steps whose episode was cut by the time limit, and the true last observations of those episodes."""

    step: np.ndarray
    member: np.ndarray
    env: np.ndarray
    observation: np.ndarray
    critic_observation: np.ndarray
    """What the critic saw: where it has no observations of its own, the same."""

    def __len__(self) -> int:
        return len(self.step)


class Cut(NamedTuple):
    """The rows that a time limit cut at one step."""

    step: int
    rows: np.ndarray
    observation: np.ndarray
    critic_observation: np.ndarray


class Rollout:
    """Arrays `[T, M, N, ...]`: a step of all rows is one write. Read it as tensors `[M, T, N, ...]`."""

    def __init__(self, steps: int, members: int, num_envs: int, spaces: Spaces, action: tuple[int, ...]) -> None:
        rows = (steps, members, num_envs)
        kept = np.uint8 if spaces.observation_dtype == np.uint8 else np.float32
        self.observation = np.zeros((*rows, *spaces.observation_shape), kept)
        own = spaces.critic_shape
        self.critic_observation = None if own is None else np.zeros((*rows, *own), np.float32)
        self.action = np.zeros((*rows, *action), np.float32 if action else np.int64)
        self.reward = np.zeros(rows, np.float32)
        self.terminated = np.zeros(rows, bool)
        self.ended = np.zeros(rows, bool)
        self.starts = np.zeros(rows, bool)
        self.steps, self.members, self.num_envs = rows
        self._cut: list[Cut] = []

    def clear(self) -> None:
        """Forgets the truncations of the rollout before."""
        self._cut = []

    def write(self, t: int, step: Step, reward: np.ndarray) -> None:
        """What step t gave; observation and action are written where they arise."""
        shape = (self.members, self.num_envs)
        self.reward[t] = reward
        self.terminated[t] = step.terminated.reshape(shape)
        np.logical_or(step.terminated, step.truncated, out=self.ended[t].reshape(-1))
        if step.ended.size:
            cut = ~step.terminated[step.ended]
            if cut.any():
                seen, own = step.final_observation[cut], step.final_critic_observation
                critic_seen = seen if self.critic_observation is None else own[cut]
                self._cut.append(Cut(t, step.ended[cut], seen, critic_seen))

    def truncations(self) -> Truncations:
        """Where a time limit cut an episode; the value of what would have followed is that of its last observation."""
        cut = self._cut
        rows = _joined([one.rows for one in cut])
        observation = _joined([one.observation for one in cut])
        return Truncations(
            step=_joined([np.full(len(one.rows), one.step) for one in cut]),
            member=rows // self.num_envs,
            env=rows % self.num_envs,
            observation=observation,
            critic_observation=observation
            if self.critic_observation is None
            else _joined([one.critic_observation for one in cut]),
        )

    def tensor(self, array: np.ndarray, device: torch.device) -> Tensor:
        """An array `[T, M, N, ...]` as a tensor `[M, T, N, ...]`."""
        return torch.from_numpy(array).transpose(0, 1).to(device).contiguous()


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
