"""The environments of a pack: steps them, tracks raw returns, and takes log points when they are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rldsl.agents.base import Learner
from rldsl.envs.contract import Step, VectorEnv
from rldsl.envs.seeding import row_seeds
from rldsl.spec.budget import Budget
from rldsl.train.recorder import Recorder


class PackWorld:
    """The `World` that agents step. Rows are members times environments, members first.

    A log point is taken in the step that reaches a multiple of `log_every`, in the middle of an iteration if need be:
    episode statistics as of that frame, and the metrics of the agent's latest update. The recorders keep it; the
    training loop writes it after the iteration.
    """

    def __init__(
        self,
        envs: VectorEnv,
        num_envs: int,
        budget: Budget,
        agent: Learner,
        recorders: Sequence[Recorder],
        active: Sequence[bool],
    ) -> None:
        self.envs = envs
        self.num_envs = num_envs
        self.budget = budget
        self.agent = agent
        self.recorders = recorders
        self.active = active
        self.frame = 0
        self.returns = np.zeros(envs.rows)
        self.lengths = np.zeros(envs.rows, np.int64)
        self.next_log = budget.log_interval

    def begin(self, seeds: Sequence[int], stream: str = "train") -> None:
        """Starts the first episode of every row. `stream` names the RNG stream that the rows' seeds come from."""
        self.observation = self.envs.reset([row for seed in seeds for row in row_seeds(seed, self.num_envs, stream)])

    @property
    def critic_observation(self) -> np.ndarray | None:
        return self.envs.critic_observation

    @property
    def exhausted(self) -> bool:
        return self.frame >= self.budget.frames

    def step(self, actions: np.ndarray) -> Step:
        step = self.envs.step(actions)
        self.observation = step.observation
        self.returns += step.reward
        self.lengths += 1
        if step.ended.size:
            self._end_episodes(step.ended)
        self.frame += self.num_envs
        if self.frame >= self.next_log or self.exhausted:
            self._take_log_point()
        return step.to_learn()

    def _end_episodes(self, ended: np.ndarray) -> None:
        for row in ended.tolist():
            self.recorders[row // self.num_envs].add_episode(float(self.returns[row]), int(self.lengths[row]))
        self.returns[ended] = 0.0
        self.lengths[ended] = 0

    def _take_log_point(self) -> None:
        metrics = self.agent.metrics()
        for member, recorder in enumerate(self.recorders):
            if self.active[member]:
                recorder.take_log_point(self.frame, {name: float(values[member]) for name, values in metrics.items()})
        self.next_log += self.budget.log_interval * (1 + (self.frame - self.next_log) // self.budget.log_interval)

    def rows(self, member: int) -> slice:
        """The rows of a member."""
        return slice(member * self.num_envs, (member + 1) * self.num_envs)

    def state(self, member: int) -> dict[str, Any]:
        """What one member needs to resume: its recorder, running returns, and environments that can save a state."""
        rows = self.rows(member)
        return {
            "envs": self.envs.state(rows) if self.envs.exact_resume else None,
            "returns": self.returns[rows].copy(),
            "lengths": self.lengths[rows].copy(),
            "next_log": self.next_log,
            "recorder": self.recorders[member].state(),
        }

    def restore(self, member: int, state: Mapping[str, Any], frame: int) -> None:
        """Resumes one member. Environments that cannot restore a state start new episodes instead."""
        rows = self.rows(member)
        self.frame, self.next_log = frame, state["next_log"]
        self.recorders[member].restore(state["recorder"], frame)
        if self.envs.exact_resume:
            self.observation = self.envs.restore(state["envs"], rows)
            self.returns[rows], self.lengths[rows] = state["returns"], state["lengths"]
