"""CrossQ (Bhatt et al. 2024, arXiv:1902.05605): soft actor-critic with batch renormalisation and no target networks."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from rldsl.agents.soft_actor_critic import SoftAgent, sample_action
from rldsl.agents.update import Batch
from rldsl.maths.members import member_mean
from rldsl.maths.off_policy_losses import combine_critics, critics_loss
from rldsl.maths.returns import expected_soft_value, td_target
from rldsl.nets.critic import Critic, Twins, beside
from rldsl.nets.heads import Policy
from rldsl.nets.layout import Layout, Params, scope
from rldsl.nets.policy_network import PolicyNetwork
from rldsl.nets.renorm import STATISTICS, RenormTrunk
from rldsl.nets.trunk import MakeTrunk
from rldsl.spec.off_policy import CrossQ


class CrossQAgent(SoftAgent[CrossQ]):
    """Trains the critics on (Q_i(s, a) - r - gamma V(s'))^2, where Q(s, a) and Q(s', a') come from one joint forward
    pass: batch normalisation over both takes the place of target networks."""

    def train_on_batch(self, frame: int, lr: Tensor, max_grad_norm: Tensor, batch: Batch) -> Tensor:
        """As SAC; then the running statistics, which the losses return behind their metrics, are stored."""
        metrics = super().train_on_batch(frame, lr, max_grad_norm, batch)
        critic = self.twins.critic.layout
        _store_statistics(self.critics.flat.view(-1, critic.size), critic, "trunk.", self.critic_metrics[:, 2:-1])
        if self.updates % self.spec.policy_delay == 0:
            statistics = metrics[:, len(self.names) : -1]
            _store_statistics(self.update.flat, self.network.layout, "actor.trunk.", statistics)
        return metrics

    def critic_loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """(Q_i(s, a) - r - gamma (1 - terminated) V(s'))^2, summed over both critics."""
        q, value, statistics = self._joint_forward(params, batch)
        target = td_target(batch["reward"], value.detach(), batch["terminated"], batch["discount"])
        loss = critics_loss(q, target)
        metrics = torch.stack([loss, member_mean(q.flatten(1))], 1)
        return loss, torch.cat([metrics, statistics.flatten(1)], 1)

    def _joint_forward(self, params: Params, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Q(s, a) `[M, 2, B]`, V(s') `[M, B]` and running statistics `[M, 2, S]`, from one pass through the critics."""
        actor = self.network.layout.views(batch["actor"])
        observation, next_observation = batch["observation"], batch["next_observation"]
        policy = self.network.policy(actor, next_observation)
        alpha = actor["log_alpha"].exp() * self.spec.critic_entropy
        if self.actions.discrete:
            outputs, statistics = self._train_critics(params, torch.cat((observation, next_observation), 1))
            q, next_q = outputs.chunk(2, 2)
            index = batch["action"].unsqueeze(1).unsqueeze(-1).expand(-1, 2, -1, 1)
            log_probs = policy.log_softmax(-1)  # type: ignore[union-attr]
            value = expected_soft_value(combine_critics(next_q, self.spec.critic_reduction), log_probs, alpha)
            return q.gather(-1, index).squeeze(-1), value, statistics
        next_action, log_prob = sample_action(policy, batch["next_noise"])
        inputs = torch.cat((beside(observation, batch["action"]), beside(next_observation, next_action)), 1)
        outputs, statistics = self._train_critics(params, inputs)
        q, next_q = outputs.squeeze(-1).chunk(2, 2)
        return q, combine_critics(next_q, self.spec.critic_reduction) - alpha.unsqueeze(1) * log_prob, statistics

    def _train_critics(self, params: Params, inputs: Tensor) -> tuple[Tensor, ...]:
        """Outputs `[M, 2, B, ...]` of both critics in training mode, and their new running statistics `[M, 2, S]`."""
        critic = self.twins.critic

        def train(params: Params, inputs: Tensor) -> tuple[Tensor, Tensor]:
            features, statistics = critic.trunk.train(scope(params, "trunk."), inputs)  # type: ignore[attr-defined]
            return critic.head.forward(params, features), statistics

        return self.twins.both(train, params, inputs)

    def train_policy(self, params: Params, observation: Tensor) -> tuple[Policy, Tensor]:
        trunk: RenormTrunk = self.network.trunk  # type: ignore[assignment]
        features, statistics = trunk.train(scope(params, "actor.trunk."), observation)
        return self.network.head.forward(scope(params, "actor."), features), statistics

    def critic_batch(self, batch: Batch) -> Batch:
        return {**batch, "actor": self.update.flat}

    def build_network(self) -> PolicyNetwork:
        return PolicyNetwork.build(self.spec.net, self.context.spaces, self._make_trunk)

    def build_critics(self) -> Twins:
        net = self.spec.critic_net or self.spec.net
        return Twins(Critic.build(net, self.context.spaces, self._make_trunk), self.update.split)

    @property
    def _make_trunk(self) -> MakeTrunk:
        return partial(RenormTrunk.build, momentum=self.spec.momentum, warmup=self.spec.renorm_after)


def _store_statistics(flat: Tensor, layout: Layout, trunk: str, statistics: Tensor) -> None:
    """Write running statistics to their place beside the parameters."""
    flat[:, layout.slice_of(f"{trunk}{STATISTICS}")] = statistics.reshape(len(flat), -1)
