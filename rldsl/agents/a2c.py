"""Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783), synchronous, with n-step returns or GAE."""

from __future__ import annotations

import torch
from torch import Tensor

from rldsl.agents.actor_critic import ActorCriticAgent
from rldsl.agents.base import World
from rldsl.agents.update import Batch
from rldsl.maths.losses import entropy_bonus, normalize_per_member, reinforce_loss, value_loss
from rldsl.maths.members import member_mean
from rldsl.maths.returns import n_step_returns
from rldsl.memory.rollout import RolloutBuffer
from rldsl.nets.layout import Params
from rldsl.spec.agent import A2C


class A2CAgent(ActorCriticAgent[A2C]):
    """One gradient step per rollout on L = -log pi(a|s) A + value_coef (V(s) - R)^2 - entropy H[pi]."""

    names = ("policy_loss", "value_loss", "entropy")
    columns = (*names, "grad_norm", "lr", "explained_variance")

    def iterate(self, world: World) -> None:
        rollout = self.collect(world)
        if rollout is None:
            return
        data = self.compute_targets(rollout)
        self.update_value_scale(data)
        coefficients = self.coefficients.at(world.frame, "entropy", "value_coef")
        coefficients["scale"] = self.value_scale()
        metrics = self.learn(world.frame, self.minibatch_items(data), coefficients)
        self.record_metrics(world.frame, metrics, explained_variance=self.explained_variance(data))
        self.advance_rnn_state()

    @torch.no_grad()
    def compute_targets(self, rollout: RolloutBuffer) -> dict[str, Tensor]:
        """With `n_step`, the target is the n-step return R and the advantage R - V(s); otherwise GAE."""
        if self.spec.n_step is None:
            return super().compute_targets(rollout)
        data = self.compute_values(rollout)
        gamma = self.coefficients.tensor("gamma", 0)
        data["target"] = n_step_returns(
            data["reward"], data["next_value"], data["terminated"], data["ended"], gamma, self.spec.n_step
        )
        data["advantage"] = data["target"] - data["value"]
        return data

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """-log pi(a|s) A + value_coef (V(s) - R)^2 - entropy H[pi]."""
        log_prob, value, entropy = self.evaluate_actions(params, batch)
        advantage = batch["advantage"]
        if self.spec.normalize_advantages:
            advantage = normalize_per_member(advantage)
        policy_loss = reinforce_loss(log_prob, advantage)
        critic_loss = value_loss(value, batch["target"], coefficients["scale"])
        bonus = entropy_bonus(entropy, coefficients["entropy"])
        loss = policy_loss + coefficients["value_coef"] * critic_loss - bonus
        return loss, torch.stack([policy_loss, critic_loss, member_mean(entropy)], 1)
