"""Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783), synchronous; n-step or generalised advantages."""

from __future__ import annotations

import torch
from torch import Tensor

from rldsl.agents.actor_critic import ActorCriticAgent
from rldsl.agents.contract import World
from rldsl.agents.update import Batch
from rldsl.maths.losses import entropy_bonus, normalize_per_member, reinforce_loss, value_loss
from rldsl.maths.members import member_mean
from rldsl.maths.returns import n_step_returns
from rldsl.memory.rollout import Rollout
from rldsl.nets.layout import Params
from rldsl.spec.agent import A2C


class A2CAgent(ActorCriticAgent[A2C]):
    """One step on each rollout, along the policy gradient with the advantage as its weight."""

    names = ("policy_loss", "value_loss", "entropy")
    columns = (*names, "grad_norm", "lr", "explained_variance")

    def iterate(self, world: World) -> None:
        rollout = self.collect(world)
        if rollout is None:
            return
        data = self.evaluate(rollout)
        self.count_targets(data)
        coefficients = self.coefficients.at(world.frame, "entropy", "value_coef")
        coefficients["scale"] = self.value_scale()
        metrics = self.learn(world.frame, self.items(data), coefficients)
        self.record_metrics(world.frame, metrics, explained_variance=self.explained_variance(data))
        self.remember()

    @torch.no_grad()
    def evaluate(self, rollout: Rollout) -> dict[str, Tensor]:
        data = super().evaluate(rollout)
        if self.spec.n_step is not None:
            gamma = self.coefficients.one("gamma", 0)
            data["target"] = n_step_returns(
                data["reward"], data["next_value"], data["terminated"], data["ended"], gamma, self.spec.n_step
            )
            data["advantage"] = data["target"] - data["value"]
        return data

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """-log pi(a) A + value_coef * (V - R)^2 - entropy * S."""
        log_prob, value, entropy = self.judge(params, batch)
        advantage = batch["advantage"]
        if self.spec.normalize_advantages:
            advantage = normalize_per_member(advantage)
        policy_loss = reinforce_loss(log_prob, advantage)
        error = value_loss(value, batch["target"], coefficients["scale"])
        bonus = entropy_bonus(entropy, coefficients["entropy"])
        loss = policy_loss + coefficients["value_coef"] * error - bonus
        return loss, torch.stack([policy_loss, error, member_mean(entropy)], 1)
