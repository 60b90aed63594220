"""What the actor-critic algorithms share: a value, advantages, and batches of transitions or of whole sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.contract import AgentContext
from rldsl.agents.on_policy import OnPolicyAgent
from rldsl.agents.update import Batch
from rldsl.maths.losses import explained_variance
from rldsl.maths.normalizers import moments_state, update_moments
from rldsl.maths.returns import generalized_advantages
from rldsl.memory.rollout import Rollout
from rldsl.nets.actor_critic import ActorCritic
from rldsl.nets.layout import Params
from rldsl.spec import agent as spec

A = TypeVar("A", bound=spec.ActorCritic)


class ActorCriticAgent(OnPolicyAgent[A]):
    """A policy and a value; what an item of a batch is, a transition or a sequence, depends on the network."""

    learns_from: ClassVar[tuple[str, ...]] = ("observation", "action", "advantage", "target")
    """What of a rollout its loss needs, beside what the critic sees."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.targets = moments_state(self.members)

    def build_network(self) -> ActorCritic:
        spec = self.spec
        return ActorCritic.build(
            spec.net, self.context.spaces, critic_net=spec.critic_net, shared=spec.shared, log_std=spec.log_std
        )

    @torch.no_grad()
    def evaluate(self, rollout: Rollout) -> dict[str, Tensor]:
        """Adds advantages, and the targets of the value."""
        data = super().evaluate(rollout)
        gamma, lam = self.coefficients.one("gamma", 0), self.coefficients.one("lam", 0)
        data["advantage"] = generalized_advantages(
            data["reward"], data["value"], data["next_value"], data["terminated"], data["ended"], gamma, lam
        )
        data["target"] = data["advantage"] + data["value"]
        return data

    def value_scale(self) -> Tensor:
        """By what values and their targets are divided in the loss, `[M]`: the targets' deviation, but at least 1."""
        deviation = np.sqrt(self.targets["var"]) if self.spec.value_target_scaling else np.ones(self.members)
        return torch.from_numpy(np.maximum(deviation, 1.0).astype(np.float32)).to(self.device)

    def count_targets(self, data: Mapping[str, Tensor]) -> None:
        """Takes the targets of a rollout into their running deviation."""
        if self.spec.value_target_scaling:
            self.targets = update_moments(self.targets, data["target"].flatten(1).cpu().numpy())

    def learning_rate(self, frame: int) -> Tensor:
        lr = super().learning_rate(frame)
        if self.spec.critic_lr is None:
            return lr
        return self.network.layout.per_parameter(lr, {"critic.": self.coefficients.one("critic_lr", frame)})

    def items(self, data: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What minibatches are drawn from: transitions `[M, T * N, ...]`, or sequences `[M, N, T, ...]`."""
        if not self.recurrent:
            return {name: data[name].flatten(1, 2) for name in self.with_critic(self.learns_from)}
        sequences = {name: data[name].transpose(1, 2) for name in self.with_critic((*self.learns_from, "starts"))}
        return sequences | {"memory": self.memory}

    def judge(self, params: Params, items: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probability and value of the items' actions and observations, and the policy's entropy, `[M, B]` each."""
        if not self.recurrent:
            policy, value = self.network.policy_and_value(params, items["observation"], items[self.critic_sees])
            return self.actions.log_prob(policy, items["action"]), value, self.actions.entropy(policy)
        names = ("observation", "starts", "action", self.critic_sees)
        observation, starts, action, critic_observation = (items[name].transpose(1, 2) for name in names)
        unrolled = self.network.unroll(params, observation, starts, items["memory"], critic_observation)
        log_prob = self.actions.log_prob(unrolled.policy, action)
        return tuple(  # type: ignore[return-value]
            one.transpose(1, 2) for one in (log_prob, unrolled.value, self.actions.entropy(unrolled.policy))
        )

    def explained_variance(self, data: Mapping[str, Tensor]) -> Tensor:
        """How much of the targets' variance the value explained before it learned from them, `[M]`."""
        return explained_variance(data["value"].flatten(1), data["target"].flatten(1))

    def state(self, member: int) -> dict[str, Any]:
        targets = {name: np.array(array[member]) for name, array in self.targets.items()}
        return super().state(member) | {"targets": targets}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        for name, array in state["targets"].items():
            self.targets[name][member] = array


def take(items: Batch, index: Tensor) -> dict[str, Tensor]:
    """The items of each member at its own indices `[M, B]`."""
    members = torch.arange(index.shape[0], device=index.device).unsqueeze(1)
    return {name: tensor[members, index] for name, tensor in items.items()}
