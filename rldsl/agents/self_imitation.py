"""Self-imitation learning (Oh et al. 2018, arXiv:1806.05635): imitate past actions whose return beat the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.update import Batch, Update
from rldsl.maths.losses import self_imitation_policy_loss, self_imitation_value_loss
from rldsl.memory.episode_buffer import EpisodeBuffer
from rldsl.memory.rollout import RolloutBuffer
from rldsl.nets.layout import Params
from rldsl.spec.agent import SIL
from rldsl.spec.errors import SpecError

if TYPE_CHECKING:
    from rldsl.agents.ppo import PPOAgent


Transition: TypeAlias = tuple[np.ndarray, np.ndarray, float]
"""Observation, action, reward."""


class SelfImitation:
    """After each PPO update, extra updates on past episodes with the loss
    policy_coef * -log pi(a|s) (R - V)+ + value_coef * 0.5 (R - V)+^2, R the Monte-Carlo return; that of an episode
    truncated by a time limit is bootstrapped from the value of its final observation."""

    def __init__(self, spec: SIL, agent: PPOAgent) -> None:
        self.spec, self.agent = spec, agent
        rollout = agent.rollout
        if rollout.critic_observation is not None:
            raise SpecError("PPO.sil keeps only what the policy sees, and here the critic sees more: unset it")
        shape, dtype = rollout.observation.shape[3:], rollout.observation.dtype
        self.buffers = [EpisodeBuffer(spec.buffer, shape, dtype, agent.actions.shape) for _ in range(agent.members)]
        self.episodes: list[list[Transition]] = [[] for _ in range(agent.members * agent.num_envs)]
        """The unfinished episode of each row."""
        ppo = agent.update  # parameters and optimizer state are PPO's own
        cache_key = agent.cache_key("self-imitation")
        self.update = Update(
            agent.network.layout, ppo.flat, ppo.optimizer, self.loss, ppo.compilation, cache_key, state=ppo.state
        )

    def learn(self, frame: int, rollout: RolloutBuffer, next_value: Tensor) -> None:
        """Store the episodes that ended in the rollout, then train on minibatches of the buffer.

        `next_value` `[M, T, N]` is the value of the true next observations.
        """
        self._store_episodes(rollout, next_value.cpu().numpy())
        not_ready = [member for member in range(len(self.buffers)) if not self._ready(member)]
        if len(not_ready) == len(self.buffers):
            return
        # A gradient of 0 would still move the parameters by the optimizer's momentum: restore them afterwards.
        saved = {member: self.update.save(member) for member in not_ready}
        agent = self.agent
        lr, max_grad_norm = agent.learning_rate(frame), agent.max_grad_norm(frame)
        for _ in range(self.spec.updates):
            batch, indices = self._sample()
            self._update_priorities(batch, indices)
            self.update(lr, max_grad_norm, {}, batch)
        for member, state in saved.items():
            self.update.load(member, state)

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """policy_coef * -log pi(a|s) (R - V)+ + value_coef * 0.5 (R - V)+^2, with importance weights."""
        policy, value = self.agent.network.policy_and_value(params, batch["observation"])
        log_prob = self.agent.actions.log_prob(policy, batch["action"])
        policy_loss = self_imitation_policy_loss(log_prob, batch["returns"], value, batch["weight"])
        value_loss = self_imitation_value_loss(batch["returns"], value, batch["weight"])
        loss = self.spec.policy_coef * policy_loss + self.spec.value_coef * value_loss
        return loss, torch.stack([policy_loss, value_loss], 1)

    def _store_episodes(self, rollout: RolloutBuffer, next_value: np.ndarray) -> None:
        """Append the rollout to the episode of each row; move finished episodes into the buffer of their member."""
        for member in range(rollout.members):
            gamma = self.agent.context.specs[member].gamma  # type: ignore[attr-defined]
            for env in range(rollout.num_envs):
                self._store_row(rollout, member, env, gamma, next_value[member, :, env])

    def _store_row(self, rollout: RolloutBuffer, member: int, env: int, gamma: float, next_value: np.ndarray) -> None:
        episode = self.episodes[member * rollout.num_envs + env]
        begin = 0
        for end in [*np.flatnonzero(rollout.ended[:, member, env]), rollout.steps - 1]:
            part = slice(begin, end + 1)
            observation, action = rollout.observation[part, member, env], rollout.action[part, member, env]
            reward = rollout.reward[part, member, env]
            episode += zip(observation.copy(), action.copy(), reward.tolist(), strict=True)
            if begin <= end and rollout.ended[end, member, env]:
                tail = 0.0 if rollout.terminated[end, member, env] else float(next_value[end])
                self._add_to_buffer(self.buffers[member], episode, gamma, tail)
                episode.clear()
            begin = end + 1

    @staticmethod
    def _add_to_buffer(buffer: EpisodeBuffer, episode: list[Transition], gamma: float, tail: float) -> None:
        """Add a finished episode with its returns R_t = r_t + gamma R_{t+1}, where R is `tail` after the last step."""
        returns, total = np.zeros(len(episode), np.float32), tail
        for t in range(len(episode) - 1, -1, -1):
            returns[t] = total = episode[t][2] + gamma * total
        buffer.add(np.stack([step[0] for step in episode]), np.stack([step[1] for step in episode]), returns)

    def _ready(self, member: int) -> bool:
        return self.buffers[member].filled >= self.spec.batch

    def _sample(self) -> tuple[dict[str, Tensor], list[np.ndarray]]:
        """A minibatch `[M, B, ...]` of transitions with importance weights, and its indices for each member."""
        drawn = [self._draw(member) for member in range(len(self.buffers))]
        indices = [index for index, _ in drawn]
        arrays = {
            name: np.stack([getattr(buffer, name)[index] for buffer, index in zip(self.buffers, indices, strict=True)])
            for name in ("observation", "action", "returns")
        }
        arrays["weight"] = np.stack([weight for _, weight in drawn])
        return {name: torch.from_numpy(array).to(self.agent.device) for name, array in arrays.items()}, indices

    def _draw(self, member: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices and importance weights; weights are 0 while a member's buffer is not ready."""
        if not self._ready(member):
            return np.zeros(self.spec.batch, np.int64), np.zeros(self.spec.batch, np.float32)
        return self.buffers[member].sample(self.agent.streams["replay"][member], self.spec.batch, self.spec.beta)

    @torch.no_grad()
    def _update_priorities(self, batch: Mapping[str, Tensor], indices: list[np.ndarray]) -> None:
        agent = self.agent
        value = agent.network.value(agent.network.layout.views(agent.update.flat), batch["observation"])
        advantage = (batch["returns"] - value).cpu().numpy()
        for member, buffer in enumerate(self.buffers):
            if self._ready(member):
                buffer.prioritize(indices[member], advantage[member], self.spec.alpha)

    def forget_episodes(self) -> None:
        """Drop the unfinished episodes: their ends will never be seen."""
        for episode in self.episodes:
            episode.clear()

    def state(self, member: int) -> dict[str, Any]:
        """One member's buffer and unfinished episodes."""
        rows = range(member * self.agent.num_envs, (member + 1) * self.agent.num_envs)
        return {"buffer": self.buffers[member].state(), "episodes": [_packed(self.episodes[row]) for row in rows]}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        """Load what `state` returned for one member."""
        self.buffers[member].restore(state["buffer"])
        for env, packed in enumerate(state["episodes"]):
            steps = zip(packed["observation"], packed["action"], packed["reward"], strict=True)
            self.episodes[member * self.agent.num_envs + env] = list(steps)


def _packed(episode: list[Transition]) -> dict[str, Any]:
    return {
        "observation": np.array([step[0] for step in episode]),
        "action": np.array([step[1] for step in episode]),
        "reward": [step[2] for step in episode],
    }
