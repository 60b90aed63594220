"""The environments of a pack: steps them, tracks raw returns, and takes log points when they are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from rldsl.agents.base import Learner
from rldsl.envs.contract import EnvError, Step, VectorEnv
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
        name: str = "the environment",
    ) -> None:
        self.envs = envs
        self.name = name
        self._float_observations = np.issubdtype(envs.spaces.observation_dtype, np.floating)
        self.num_envs = num_envs
        self.budget = budget
        self.agent = agent
        self.recorders = recorders
        for recorder in recorders:
            recorder.expect_numbers(envs.episode_metrics)
        self.active = active
        self.frame = 0
        self.returns = np.zeros(envs.rows)
        self.lengths = np.zeros(envs.rows, np.int64)
        self.next_log = budget.log_interval

    def begin(self, seeds: Sequence[int], stream: str = "train") -> None:
        """Starts the first episode of every row. `stream` names the RNG stream that the rows' seeds come from."""
        self.seeds = list(seeds)
        self._stepping = False
        self.observation = self.envs.reset([row for seed in seeds for row in row_seeds(seed, self.num_envs, stream)])
        self._check_finite(np.zeros(self.envs.rows), self.observation)
        self._stepping = True

    @property
    def critic_observation(self) -> np.ndarray | None:
        return self.envs.critic_observation

    @property
    def exhausted(self) -> bool:
        return self.frame >= self.budget.frames

    def step(self, actions: np.ndarray) -> Step:
        step = self.envs.step(actions)
        self._check_finite(step.reward, step.observation, actions)
        self.observation = step.observation
        self.returns += step.reward
        self.lengths += 1
        if step.ended.size:
            self._end_episodes(step)
        self.frame += self.num_envs
        if self.frame >= self.next_log or self.exhausted:
            self._take_log_point()
        return step.to_learn()

    def _end_episodes(self, step: Step) -> None:
        ended, numbers = step.ended, step.ended_metrics or {}
        for at, row in enumerate(ended.tolist()):
            own = {name: float(values[at]) for name, values in numbers.items()}
            self.recorders[row // self.num_envs].add_episode(float(self.returns[row]), int(self.lengths[row]), own)
        self.returns[ended] = 0.0
        self.lengths[ended] = 0

    def _check_finite(self, reward: np.ndarray, observation: np.ndarray, actions: np.ndarray | None = None) -> None:
        """Raises `EnvError` if a reward or observation is not finite. Sums are cheap, but may overflow."""
        if not isfinite(reward.sum()):
            self._refuse("reward", reward[:, None], actions)
        if self._float_observations and not isfinite(observation.sum()):
            self._refuse("observation", observation.reshape(self.envs.rows, -1), actions)

    def _refuse(self, what: str, values: np.ndarray, actions: np.ndarray | None) -> None:
        """Raises `EnvError` for the first of the values `[rows, K]` that is not finite, if there is one.

        Not if the row's member has diverged or its action is not finite: then the agent is to blame, and only it fails.
        """
        wrong = ~np.isfinite(values).all(1)
        if actions is not None:
            wrong &= np.isfinite(actions.reshape(len(values), -1)).all(1)
        for row in np.flatnonzero(wrong).tolist():
            value = values[row][~np.isfinite(values[row])][0]
            member, env = divmod(row, self.num_envs)
            if not self.active[member]:
                continue
            raise EnvError(
                f"{self.name}: the {what} of environment {env} (seed {self.seeds[member]}) is {value} "
                f"after step {int(self.lengths[row]) + self._stepping} of its episode"
            )

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
