"""REINFORCE (Williams 1992): the policy gradient with returns-to-go, and no value but for what a time limit cut off."""

from __future__ import annotations

import torch
from torch import Tensor

from rldsl.agents.contract import World
from rldsl.agents.on_policy import OnPolicyAgent
from rldsl.agents.update import Batch
from rldsl.maths.losses import entropy_bonus, normalize_per_member, reinforce_loss
from rldsl.maths.members import member_mean
from rldsl.maths.returns import discounted_returns
from rldsl.nets.layout import Params
from rldsl.spec.agent import Reinforce


class ReinforceAgent(OnPolicyAgent[Reinforce]):
    """One step on each rollout. The value learns the same returns, and serves only to end what was cut off."""

    names = ("policy_loss", "value_loss", "entropy")
    columns = (*names, "grad_norm", "lr")

    def iterate(self, world: World) -> None:
        rollout = self.collect(world)
        if rollout is None:
            return
        data = self.evaluate(rollout)
        gamma = self.coefficients.one("gamma", 0)
        data["return"] = discounted_returns(
            data["reward"], data["terminated"], data["ended"], data["next_value"], gamma
        )
        names = self.with_critic(("observation", "action", "return"))
        batch = {name: data[name].flatten(1, 2) for name in names}
        self.record_metrics(world.frame, self.learn(world.frame, batch, self.coefficients.at(world.frame, "entropy")))

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """-log pi(a) R - entropy * S, and the value's own (V - R)^2, which no gradient of the policy sees."""
        policy, value = self.network.policy_and_value(params, batch["observation"], batch[self.critic_sees])
        returns = batch["return"]
        weight = normalize_per_member(returns) if self.spec.normalize_returns else returns
        log_prob, entropy = self.actions.log_prob(policy, batch["action"]), self.actions.entropy(policy)
        policy_loss = reinforce_loss(log_prob, weight)
        scale = returns.flatten(1).std(1, correction=0).clamp(min=1.0).unsqueeze(1)
        value_loss = member_mean(((value - returns) / scale).square())
        loss = policy_loss + value_loss - entropy_bonus(entropy, coefficients["entropy"])
        return loss, torch.stack([policy_loss, value_loss, member_mean(entropy)], 1)
