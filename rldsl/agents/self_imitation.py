"""Self-imitation learning (Oh et al. 2018, arXiv:1806.05635): imitate the past where it beat the expectation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.update import Batch, Update
from rldsl.maths.losses import self_imitation_policy_loss, self_imitation_value_loss
from rldsl.memory.episodes import EpisodeMemory
from rldsl.memory.rollout import Rollout
from rldsl.nets.layout import Params
from rldsl.spec.agent import SIL
from rldsl.spec.errors import SpecError

if TYPE_CHECKING:
    from rldsl.agents.ppo import PPOAgent


Transition: TypeAlias = tuple[np.ndarray, np.ndarray, float]
"""Observation, action, reward."""


class SelfImitation:
    """Gathers whole episodes with their Monte-Carlo returns, and learns from the better ones after each rollout."""

    def __init__(self, spec: SIL, agent: PPOAgent) -> None:
        self.spec, self.agent = spec, agent
        rollout = agent.rollout
        if rollout.critic_observation is not None:
            raise SpecError("PPO.sil keeps only what the policy sees, and here the critic sees more: unset it")
        shape, dtype = rollout.observation.shape[3:], rollout.observation.dtype
        self.memories = [EpisodeMemory(spec.buffer, shape, dtype, agent.actions.shape) for _ in range(agent.members)]
        own = agent.update
        cache_key = agent.cache_key("self-imitation")
        self.update = Update(
            agent.network.layout, own.flat, own.optimizer, self.loss, own.compilation, cache_key, state=own.state
        )
        self.open: list[list[Transition]] = [[] for _ in range(agent.members * agent.num_envs)]

    def learn(self, frame: int, rollout: Rollout) -> None:
        """Takes in the episodes that ended in the rollout, then steps on samples of the memory."""
        self._gather(rollout)
        waiting = [member for member in range(len(self.memories)) if not self._ready(member)]
        if len(waiting) == len(self.memories):
            return
        kept = {member: self.update.save(member) for member in waiting}
        agent = self.agent
        lr = agent.learning_rate(frame)
        max_norm = agent.coefficients.one("max_grad_norm", frame, default=float("inf"))
        for _ in range(self.spec.updates):
            batch, indices = self._sample()
            self._prioritize(batch, indices)
            self.update(lr, max_norm, {}, batch)
        for member, saved in kept.items():  # the optimizer moves by its momentum where the gradient is 0
            self.update.load(member, saved)

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """policy_coef * -log pi(a) (R - V)+ + value_coef * 0.5 (R - V)+^2, with importance weights."""
        policy, value = self.agent.network.policy_and_value(params, batch["observation"])
        log_prob = self.agent.actions.log_prob(policy, batch["action"])
        policy_loss = self_imitation_policy_loss(log_prob, batch["returns"], value, batch["weight"])
        value_loss = self_imitation_value_loss(batch["returns"], value, batch["weight"])
        loss = self.spec.policy_coef * policy_loss + self.spec.value_coef * value_loss
        return loss, torch.stack([policy_loss, value_loss], 1)

    def _gather(self, rollout: Rollout) -> None:
        """Follows each row through the rollout; an episode that ends goes into the memory of its member."""
        for member in range(rollout.members):
            gamma = self.agent.context.specs[member].gamma  # type: ignore[attr-defined]
            for env in range(rollout.num_envs):
                self._follow(rollout, member, env, gamma)

    def _follow(self, rollout: Rollout, member: int, env: int, gamma: float) -> None:
        steps = self.open[member * rollout.num_envs + env]
        begin = 0
        for end in [*np.flatnonzero(rollout.ended[:, member, env]), rollout.steps - 1]:
            part = slice(begin, end + 1)
            rows = (rollout.observation[part, member, env], rollout.action[part, member, env])
            steps += zip(rows[0].copy(), rows[1].copy(), rollout.reward[part, member, env].tolist(), strict=True)
            if begin <= end and rollout.ended[end, member, env]:
                self._close(self.memories[member], steps, gamma)
                steps.clear()
            begin = end + 1

    @staticmethod
    def _close(memory: EpisodeMemory, steps: list[Transition], gamma: float) -> None:
        returns, total = np.zeros(len(steps), np.float32), 0.0
        for t in range(len(steps) - 1, -1, -1):
            returns[t] = total = steps[t][2] + gamma * total
        memory.add(np.stack([step[0] for step in steps]), np.stack([step[1] for step in steps]), returns)

    def _ready(self, member: int) -> bool:
        return self.memories[member].filled >= self.spec.batch

    def _draw(self, member: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices and weights; what has no weight for a member that is not ready."""
        if not self._ready(member):
            return np.zeros(self.spec.batch, np.int64), np.zeros(self.spec.batch, np.float32)
        return self.memories[member].sample(self.agent.streams["replay"][member], self.spec.batch, self.spec.beta)

    def _sample(self) -> tuple[dict[str, Tensor], list[np.ndarray]]:
        drawn = [self._draw(member) for member in range(len(self.memories))]
        indices = [index for index, _ in drawn]
        arrays = {
            name: np.stack([getattr(memory, name)[index] for memory, index in zip(self.memories, indices, strict=True)])
            for name in ("observation", "action", "returns")
        }
        arrays["weight"] = np.stack([weight for _, weight in drawn])
        return {name: torch.from_numpy(array).to(self.agent.device) for name, array in arrays.items()}, indices

    @torch.no_grad()
    def _prioritize(self, batch: Mapping[str, Tensor], indices: list[np.ndarray]) -> None:
        agent = self.agent
        value = agent.network.value(agent.network.layout.views(agent.update.flat), batch["observation"])
        advantage = (batch["returns"] - value).cpu().numpy()
        for member, memory in enumerate(self.memories):
            if self._ready(member):
                memory.prioritize(indices[member], advantage[member], self.spec.alpha)

    def forget_episodes(self) -> None:
        """The episodes under way will never end."""
        for steps in self.open:
            steps.clear()

    def state(self, member: int) -> dict[str, Any]:
        """One member's memory, and the episodes that it has under way."""
        rows = range(member * self.agent.num_envs, (member + 1) * self.agent.num_envs)
        return {"memory": self.memories[member].state(), "open": [_packed(self.open[row]) for row in rows]}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """Goes on as it was."""
        self.memories[member].restore(state["memory"])
        for env, packed in enumerate(state["open"]):
            rows = zip(packed["observation"], packed["action"], packed["reward"], strict=True)
            self.open[member * self.agent.num_envs + env] = [(seen, action, reward) for seen, action, reward in rows]


def _packed(steps: list[Transition]) -> dict[str, Any]:
    return {
        "observation": np.array([step[0] for step in steps]),
        "action": np.array([step[1] for step in steps]),
        "reward": [step[2] for step in steps],
    }
