"""A rollout: what every environment of every member showed and got over T steps, written once and read as a batch."""

from __future__ import annotations

from dataclasses import dataclass

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

    def __len__(self) -> int:
        return len(self.step)


class Rollout:
    """Arrays `[T, M, N, ...]`: a step of all rows is one write. Read it as tensors `[M, T, N, ...]`."""

    def __init__(self, steps: int, members: int, num_envs: int, spaces: Spaces, action: tuple[int, ...]) -> None:
        rows = (steps, members, num_envs)
        kept = np.uint8 if spaces.observation_dtype == np.uint8 else np.float32
        self.observation = np.zeros((*rows, *spaces.observation_shape), kept)
        self.action = np.zeros((*rows, *action), np.float32 if action else np.int64)
        self.reward = np.zeros(rows, np.float32)
        self.terminated = np.zeros(rows, bool)
        self.ended = np.zeros(rows, bool)
        self.starts = np.zeros(rows, bool)
        self.steps, self.members, self.num_envs = rows
        self._cut: list[tuple[int, np.ndarray, np.ndarray]] = []

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
                self._cut.append((t, step.ended[cut], step.final_observation[cut]))

    def truncations(self) -> Truncations:
        """Where a time limit cut an episode; the value of what would have followed is that of its last observation."""
        rows = np.concatenate([rows for _, rows, _ in self._cut]) if self._cut else np.zeros(0, np.int64)
        return Truncations(
            step=np.concatenate([np.full(len(rows), t) for t, rows, _ in self._cut]) if self._cut else rows,
            member=rows // self.num_envs,
            env=rows % self.num_envs,
            observation=np.concatenate([seen for _, _, seen in self._cut])
            if self._cut
            else np.zeros((0, *self.observation.shape[3:]), np.float32),
        )

    def tensor(self, array: np.ndarray, device: torch.device) -> Tensor:
        """An array `[T, M, N, ...]` as a tensor `[M, T, N, ...]`."""
        return torch.from_numpy(array).transpose(0, 1).to(device).contiguous()
