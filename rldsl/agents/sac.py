"""Soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905), for continuous actions and, with exact expectations, for
discrete ones (Christodoulou 2019, arXiv:1910.07207)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.base import AgentContext
from rldsl.agents.soft_actor_critic import SoftAgent, sample_action
from rldsl.agents.update import Batch
from rldsl.maths.members import member_mean
from rldsl.maths.off_policy_losses import combine_critics, critics_loss
from rldsl.maths.returns import expected_soft_value, td_target
from rldsl.maths.target_networks import soft_update
from rldsl.nets.critic import Critic, Twins
from rldsl.nets.layout import Params, prefixed, scope
from rldsl.spec.off_policy import SAC

TARGETS = "target."


class SACAgent(SoftAgent[SAC]):
    """Trains the critics on (Q_i(s, a) - r - gamma V(s'))^2, with the value V(s') = E[min_i Q_target,i(s', a') - alpha
    log pi(a'|s')] by target critics, which are updated with the rate tau."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.targets = self.critics.flat.clone()
        self._targets = prefixed(TARGETS, self.critics.pieces(self.targets))

    def critic_loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """(Q_i(s, a) - r - gamma (1 - terminated) V(s'))^2, summed over both critics."""
        q = self._q(params, batch)
        target = td_target(batch["reward"], self._next_value(batch), batch["terminated"], batch["discount"])
        loss = critics_loss(q, target)
        return loss, torch.stack([loss, member_mean(q.flatten(1))], 1)

    def _q(self, params: Params, batch: Batch) -> Tensor:
        """Q_i(s, a) of both critics for the actions of the minibatch, `[M, 2, B]`."""
        if not self.actions.discrete:
            return self.twins.q(params, batch["observation"], batch["action"])
        index = batch["action"].unsqueeze(1).unsqueeze(-1).expand(-1, 2, -1, 1)
        return self.twins.values(params, batch["observation"]).gather(-1, index).squeeze(-1)

    def _next_value(self, batch: Batch) -> Tensor:
        """V(s') = E[Q_target(s', a') - alpha log pi(a'|s')], `[M, B]`. `critic_entropy=False` drops the second term."""
        actor, targets = self.network.layout.views(batch["actor"]), self.critics.params(scope(batch, TARGETS))
        observation, alpha = batch["next_observation"], actor["log_alpha"].exp() * self.spec.critic_entropy
        policy = self.network.policy(actor, observation)
        if self.actions.discrete:
            q = combine_critics(self.twins.values(targets, observation), self.spec.critic_reduction)
            return expected_soft_value(q, policy.log_softmax(-1), alpha)  # type: ignore[union-attr]
        action, log_prob = sample_action(policy, batch["next_noise"])
        q = combine_critics(self.twins.q(targets, observation, action), self.spec.critic_reduction)
        return q - alpha.unsqueeze(1) * log_prob

    def after_critics(self, pieces: Params, batch: Batch, coefficients: Batch) -> None:
        """Q_target += tau (Q - Q_target)."""
        for name, target in scope(batch, TARGETS).items():
            soft_update(target, pieces[name], coefficients["tau"])

    def critic_batch(self, batch: Batch) -> Batch:
        return {**batch, "actor": self.update.flat, **self._targets}

    def critic_coefficients(self, frame: int) -> Batch:
        return self.coefficients.at(frame, "tau")

    def build_critics(self) -> Twins:
        return Twins(Critic.build(self.spec.critic_net or self.spec.net, self.context.spaces), self.update.split)

    def state(self, member: int) -> dict[str, Any]:
        return super().state(member) | {"targets": self.targets[member].cpu().numpy().copy()}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.targets[member] = torch.from_numpy(np.array(state["targets"])).to(self.device)

    def initialize(self, member: int, state: Mapping[str, Any]) -> None:
        super().initialize(member, state)
        self.targets[member] = self.critics.flat[member]
