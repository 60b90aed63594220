"""REINFORCE (Williams 1992): the Monte-Carlo policy gradient with returns-to-go."""

from __future__ import annotations

import torch
from torch import Tensor

from rldsl.agents.base import World
from rldsl.agents.on_policy import OnPolicyAgent
from rldsl.agents.update import Batch
from rldsl.maths.losses import entropy_bonus, normalize_per_member, reinforce_loss
from rldsl.maths.members import member_mean
from rldsl.maths.returns import discounted_returns
from rldsl.nets.layout import Params
from rldsl.spec.agent import Reinforce


class ReinforceAgent(OnPolicyAgent[Reinforce]):
    """One gradient step per rollout on L = -log pi(a|s) G - entropy H[pi], with the return-to-go G.

    A value function is trained on the same returns. It is not a baseline: it only bootstraps episodes that the end of
    the rollout or a time limit cut off.
    """

    names = ("policy_loss", "value_loss", "entropy")
    columns = (*names, "grad_norm", "lr")

    def iterate(self, world: World) -> None:
        rollout = self.collect(world)
        if rollout is None:
            return
        data = self.compute_values(rollout)
        gamma = self.coefficients.tensor("gamma", 0)
        data["return"] = discounted_returns(
            data["reward"], data["terminated"], data["ended"], data["next_value"], gamma
        )
        names = self.with_critic_input(("observation", "action", "return"))
        batch = {name: data[name].flatten(1, 2) for name in names}
        metrics = self.learn(world.frame, batch, self.coefficients.at(world.frame, "entropy"))
        self.record_metrics(world.frame, metrics)

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """-log pi(a|s) G - entropy H[pi] + (V(s) - G)^2 / Var(G), the last with a network of its own."""
        policy, value = self.network.policy_and_value(params, batch["observation"], batch[self.critic_input])
        returns = batch["return"]
        weight = normalize_per_member(returns) if self.spec.normalize_returns else returns
        log_prob, entropy = self.actions.log_prob(policy, batch["action"]), self.actions.entropy(policy)
        policy_loss = reinforce_loss(log_prob, weight)
        scale = returns.flatten(1).std(1, correction=0).clamp(min=1.0).unsqueeze(1)
        value_loss = member_mean(((value - returns) / scale).square())
        loss = policy_loss + value_loss - entropy_bonus(entropy, coefficients["entropy"])
        return loss, torch.stack([policy_loss, value_loss, member_mean(entropy)], 1)
