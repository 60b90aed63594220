"""Base class of PPO and A2C: advantages, value targets, and minibatches of transitions or of whole sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.base import AgentContext
from rldsl.agents.on_policy import OnPolicyAgent
from rldsl.agents.update import Batch
from rldsl.maths.losses import explained_variance
from rldsl.maths.normalizers import moments_state, update_moments
from rldsl.maths.returns import generalized_advantages
from rldsl.memory.rollout import RolloutBuffer
from rldsl.nets.actor_critic import ActorCritic
from rldsl.nets.layout import Params
from rldsl.spec import agent as spec

A = TypeVar("A", bound=spec.ActorCritic)


class ActorCriticAgent(OnPolicyAgent[A]):
    """A policy and a value function. Minibatches hold transitions or, with a recurrent network, whole sequences."""

    batch_fields: ClassVar[tuple[str, ...]] = ("observation", "action", "advantage", "target")
    """Rollout fields that the loss reads, in addition to the critic's observation."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.target_moments = moments_state(self.members)

    def build_network(self) -> ActorCritic:
        spec = self.spec
        return ActorCritic.build(
            spec.net, self.context.spaces, critic_net=spec.critic_net, shared=spec.shared, log_std=spec.log_std
        )

    @torch.no_grad()
    def compute_targets(self, rollout: RolloutBuffer) -> dict[str, Tensor]:
        """The rollout with values, GAE advantages A_t and value targets A_t + V(s_t), `[M, T, N]`."""
        data = self.compute_values(rollout)
        gamma, lam = self.coefficients.tensor("gamma", 0), self.coefficients.tensor("lam", 0)
        data["advantage"] = generalized_advantages(
            data["reward"], data["value"], data["next_value"], data["terminated"], data["ended"], gamma, lam
        )
        data["target"] = data["advantage"] + data["value"]
        return data

    def minibatch_items(self, data: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What minibatches are drawn from: transitions `[M, T * N, ...]`, or sequences `[M, N, T, ...]`."""
        if not self.recurrent:
            return {name: data[name].flatten(1, 2) for name in self.with_critic_input(self.batch_fields)}
        names = self.with_critic_input((*self.batch_fields, "starts"))
        return {name: data[name].transpose(1, 2) for name in names} | {"rnn_state": self.rnn_state}

    def evaluate_actions(self, params: Params, items: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """log pi(a|s), V(s) and the policy's entropy for the items of a minibatch, `[M, B]` or `[M, B, T]` each."""
        if not self.recurrent:
            policy, value = self.network.policy_and_value(params, items["observation"], items[self.critic_input])
            return self.actions.log_prob(policy, items["action"]), value, self.actions.entropy(policy)
        names = ("observation", "starts", "action", self.critic_input)
        observation, starts, action, critic_observation = (items[name].transpose(1, 2) for name in names)
        unrolled = self.network.unroll(params, observation, starts, items["rnn_state"], critic_observation)
        log_prob, entropy = self.actions.log_prob(unrolled.policy, action), self.actions.entropy(unrolled.policy)
        return log_prob.transpose(1, 2), unrolled.value.transpose(1, 2), entropy.transpose(1, 2)

    def value_scale(self) -> Tensor:
        """Divisor `[M]` of values and targets in the loss: the targets' standard deviation so far, at least 1."""
        std = np.sqrt(self.target_moments["var"]) if self.spec.value_target_scaling else np.ones(self.members)
        return torch.from_numpy(np.maximum(std, 1.0).astype(np.float32)).to(self.device)

    def update_value_scale(self, data: Mapping[str, Tensor]) -> None:
        """Update the running moments of the value targets with those of a rollout."""
        if self.spec.value_target_scaling:
            self.target_moments = update_moments(self.target_moments, data["target"].flatten(1).cpu().numpy())

    def learning_rate(self, frame: int) -> Tensor:
        lr = super().learning_rate(frame)
        if self.spec.critic_lr is None:
            return lr
        return self.network.layout.per_parameter(lr, {"critic.": self.coefficients.tensor("critic_lr", frame)})

    def explained_variance(self, data: Mapping[str, Tensor]) -> Tensor:
        """Explained variance `[M]` of the value targets by the values before the update."""
        return explained_variance(data["value"].flatten(1), data["target"].flatten(1))

    def state(self, member: int) -> dict[str, Any]:
        moments = {name: np.array(array[member]) for name, array in self.target_moments.items()}
        return super().state(member) | {"target_moments": moments}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        for name, array in state["target_moments"].items():
            self.target_moments[name][member] = array


def take(items: Batch, index: Tensor) -> dict[str, Tensor]:
    """The items at each member's own indices `[M, B]`."""
    members = torch.arange(index.shape[0], device=index.device).unsqueeze(1)
    return {name: tensor[members, index] for name, tensor in items.items()}
