"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347), with self-imitation as an option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rldsl.agents.actor_critic import ActorCriticAgent, take
from rldsl.agents.contract import AgentContext, World
from rldsl.agents.on_policy import shuffled
from rldsl.agents.self_imitation import SelfImitation
from rldsl.agents.update import Batch
from rldsl.maths.losses import (
    approximate_kl,
    clip_fraction,
    clipped_value_loss,
    entropy_bonus,
    normalize_per_member,
    ppo_clip_loss,
    value_loss,
)
from rldsl.maths.members import member_mean
from rldsl.maths.streams import restore_stream, stream_state
from rldsl.memory.rollout import Rollout
from rldsl.nets.layout import Params
from rldsl.spec.agent import PPO


class Halted(NamedTuple):
    """A member as it was when its epochs ended, while those of others go on."""

    update: dict[str, Any]
    shuffle: dict[str, Any]
    metrics: Tensor


class PPOAgent(ActorCriticAgent[PPO]):
    """Several passes over each rollout, none of which should move the policy further than the clip allows."""

    names = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
    columns = (*names, "grad_norm", "lr", "explained_variance")
    learns_from = (*ActorCriticAgent.learns_from, "log_prob", "value")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.imitation = SelfImitation(self.spec.sil, self) if self.spec.sil else None

    def gradient_steps(self) -> int:
        return super().gradient_steps() * self.spec.epochs * self._minibatches()

    def iterate(self, world: World) -> None:
        rollout = self.collect(world)
        if rollout is None:
            return
        data = self.evaluate(rollout)
        data["log_prob"] = self._log_prob(data)
        self.count_targets(data)
        explained = self.explained_variance(data)
        metrics: list[Tensor] = []
        halted: dict[int, Halted] = {}
        for epoch in range(self.spec.epochs):
            if epoch and self.spec.recompute_advantages:
                data |= self._advantages_anew(rollout)
            self._pass(world.frame, data, metrics)
            if self._halt(metrics, halted):
                break
        self.record_metrics(world.frame, self._settle(metrics, halted), explained_variance=explained)
        if self.imitation is not None:
            self.imitation.learn(world.frame, rollout)
        self.remember()

    def _pass(self, frame: int, data: Mapping[str, Tensor], metrics: list[Tensor]) -> None:
        """One epoch: every item once, in minibatches."""
        coefficients = self.coefficients.at(frame, "clip", "entropy", "value_coef")
        coefficients["scale"] = self.value_scale()
        lr, max_grad_norm, items = self.learning_rate(frame), self.max_grad_norm(frame), self.items(data)
        count = items["advantage"].shape[1]
        for index in shuffled(self.streams["shuffle"], count, count // self._minibatches()):
            batch = {**items, "index": index.to(self.device)}
            metrics.append(self.update(lr, max_grad_norm, coefficients, batch))

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """-L_clip + value_coef * L_value - entropy * S, over the minibatch that `index` chooses."""
        items = take({name: tensor for name, tensor in batch.items() if name != "index"}, batch["index"])
        log_prob, value, entropy = self.judge(params, items)
        old, clip, advantage = items["log_prob"], coefficients["clip"], items["advantage"]
        if self.spec.normalize_advantages:
            advantage = normalize_per_member(advantage)
        policy_loss = ppo_clip_loss(log_prob, old, advantage, clip)
        error = self._value_loss(value, items, coefficients)
        bonus = entropy_bonus(entropy, coefficients["entropy"])
        loss = policy_loss + coefficients["value_coef"] * error - bonus
        kl, clipped = approximate_kl(log_prob, old), clip_fraction(log_prob, old, clip)
        return loss, torch.stack([policy_loss, error, member_mean(entropy), kl, clipped], 1)

    def _value_loss(self, value: Tensor, items: Batch, coefficients: Batch) -> Tensor:
        target, scale = items["target"], coefficients["scale"]
        if self.spec.value_clip:
            return 0.5 * clipped_value_loss(value, items["value"], target, coefficients["clip"], scale)
        return value_loss(value, target, scale)

    @torch.no_grad()
    def _log_prob(self, data: Mapping[str, Tensor]) -> Tensor:
        """What the policy that acted thought of its actions, once over the whole rollout, `[M, T, N]`."""
        params = self.network.layout.views(self.update.flat)
        if self.recurrent:
            return self.actions.log_prob(self.unroll(params, data).policy, data["action"])
        policy = self.network.policy(params, data["observation"].flatten(1, 2))
        return self.actions.log_prob(policy, data["action"].flatten(1, 2)).reshape(data["reward"].shape)

    def _advantages_anew(self, rollout: Rollout) -> dict[str, Tensor]:
        """With the value as it is by now; the old policy stays the one that acted."""
        data = self.evaluate(rollout)
        return {name: data[name] for name in ("advantage", "target")}

    def _halt(self, metrics: list[Tensor], halted: dict[int, Halted]) -> bool:
        """Notes the members whose last minibatch is further from the old policy than the spec wants: are these all?"""
        if self.spec.target_kl is None:
            return False
        too_far = metrics[-1][:, self.names.index("kl")] > self.spec.target_kl
        for member in too_far.nonzero().flatten().tolist():
            if member not in halted:
                shuffle = stream_state(self.streams["shuffle"][member])
                halted[member] = Halted(self.update.save(member), shuffle, torch.stack(metrics).mean(0)[member])
        return len(halted) == self.members

    def _settle(self, metrics: list[Tensor], halted: Mapping[int, Halted]) -> Tensor:
        """The mean of the metrics `[M, K]`; a member that halted is again as it was then."""
        mean = torch.stack(metrics).mean(0)
        for member, then in halted.items():
            self.update.load(member, then.update)
            restore_stream(self.streams["shuffle"][member], then.shuffle)
            mean[member] = then.metrics
        return mean

    def _minibatches(self) -> int:
        """Minibatches of an epoch; of sequences each has at least one."""
        count = self.spec.rollout * self.num_envs // self.spec.minibatch
        return max(1, min(count, self.num_envs)) if self.recurrent else count

    def forget_episodes(self) -> None:
        super().forget_episodes()
        if self.imitation is not None:
            self.imitation.forget_episodes()

    def state(self, member: int) -> dict[str, Any]:
        imitation = self.imitation.state(member) if self.imitation else None
        return super().state(member) | {"imitation": imitation}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        if self.imitation is not None:
            self.imitation.restore(member, state["imitation"])
