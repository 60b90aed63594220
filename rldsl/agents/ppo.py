"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347), optionally with self-imitation learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rldsl.agents.actor_critic import ActorCriticAgent, take
from rldsl.agents.base import AgentContext, World
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
from rldsl.memory.rollout import RolloutBuffer
from rldsl.nets.layout import Params
from rldsl.spec.agent import PPO


class EarlyStopped(NamedTuple):
    """A member at the time it exceeded `target_kl`, while the epochs of other members continued."""

    update: dict[str, Any]
    shuffle_rng: dict[str, Any]
    metrics: Tensor


class PPOAgent(ActorCriticAgent[PPO]):
    """Several epochs of minibatch updates per rollout on L = -L_clip + value_coef L_value - entropy H[pi], with
    L_clip = E[min(rho A, clip(rho, 1 - eps, 1 + eps) A)] and rho = pi(a|s) / pi_old(a|s)."""

    names = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
    columns = (*names, "grad_norm", "lr", "explained_variance")
    batch_fields = (*ActorCriticAgent.batch_fields, "log_prob", "value")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.imitation = SelfImitation(self.spec.sil, self) if self.spec.sil else None

    def iterate(self, world: World) -> None:
        rollout = self.collect(world)
        if rollout is None:
            return
        data = self.compute_targets(rollout)
        data["log_prob"] = self._old_log_prob(data)
        self.update_value_scale(data)
        explained_variance = self.explained_variance(data)
        metrics: list[Tensor] = []
        stopped: dict[int, EarlyStopped] = {}
        for epoch in range(self.spec.epochs):
            if epoch and self.spec.recompute_advantages:
                data |= self._recompute_advantages(rollout)
            metrics += self._train_epoch(world.frame, data)
            if self._all_exceed_target_kl(metrics, stopped):
                break
        mean_metrics = self._restore_stopped(torch.stack(metrics).mean(0), stopped)
        self.record_metrics(world.frame, mean_metrics, explained_variance=explained_variance)
        if self.imitation is not None:
            self.imitation.learn(world.frame, rollout, data["next_value"])
        self.advance_rnn_state()

    def _train_epoch(self, frame: int, data: Mapping[str, Tensor]) -> list[Tensor]:
        """One pass over the rollout in shuffled minibatches; returns the metrics of each."""
        coefficients = self.coefficients.at(frame, "clip", "entropy", "value_coef")
        coefficients["scale"] = self.value_scale()
        lr, max_grad_norm, items = self.learning_rate(frame), self.max_grad_norm(frame), self.minibatch_items(data)
        count = items["advantage"].shape[1]
        return [
            self.update(lr, max_grad_norm, coefficients, {**items, "index": index.to(self.device)})
            for index in shuffled(self.streams["shuffle"], count, count // self._num_minibatches())
        ]

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """-L_clip + value_coef L_value - entropy H[pi] of the minibatch at `index`."""
        items = take({name: tensor for name, tensor in batch.items() if name != "index"}, batch["index"])
        log_prob, value, entropy = self.evaluate_actions(params, items)
        old_log_prob, clip, advantage = items["log_prob"], coefficients["clip"], items["advantage"]
        if self.spec.normalize_advantages:
            advantage = normalize_per_member(advantage)
        policy_loss = ppo_clip_loss(log_prob, old_log_prob, advantage, clip)
        critic_loss = self._value_loss(value, items, coefficients)
        bonus = entropy_bonus(entropy, coefficients["entropy"])
        loss = policy_loss + coefficients["value_coef"] * critic_loss - bonus
        kl, clipped = approximate_kl(log_prob, old_log_prob), clip_fraction(log_prob, old_log_prob, clip)
        return loss, torch.stack([policy_loss, critic_loss, member_mean(entropy), kl, clipped], 1)

    def _value_loss(self, value: Tensor, items: Batch, coefficients: Batch) -> Tensor:
        target, scale = items["target"], coefficients["scale"]
        if self.spec.value_clip:
            return clipped_value_loss(value, items["value"], target, coefficients["clip"], scale)
        return value_loss(value, target, scale)

    @torch.no_grad()
    def _old_log_prob(self, data: Mapping[str, Tensor]) -> Tensor:
        """log pi_old(a|s) of the policy that collected the rollout, `[M, T, N]`."""
        params = self.network.layout.views(self.update.flat)
        if self.recurrent:
            return self.actions.log_prob(self.unroll(params, data).policy, data["action"])
        policy = self.network.policy(params, data["observation"].flatten(1, 2))
        return self.actions.log_prob(policy, data["action"].flatten(1, 2)).reshape(data["reward"].shape)

    def _recompute_advantages(self, rollout: RolloutBuffer) -> dict[str, Tensor]:
        """Advantages and targets by the current value function; pi_old and V_old stay as they are."""
        data = self.compute_targets(rollout)
        return {name: data[name] for name in ("advantage", "target")}

    def _all_exceed_target_kl(self, metrics: list[Tensor], stopped: dict[int, EarlyStopped]) -> bool:
        """Whether the KL divergence of every member has exceeded `target_kl`; saves those that newly did."""
        if self.spec.target_kl is None:
            return False
        exceeded = metrics[-1][:, self.names.index("kl")] > self.spec.target_kl
        for member in exceeded.nonzero().flatten().tolist():
            if member not in stopped:
                rng = stream_state(self.streams["shuffle"][member])
                stopped[member] = EarlyStopped(self.update.save(member), rng, torch.stack(metrics).mean(0)[member])
        return len(stopped) == self.members

    def _restore_stopped(self, metrics: Tensor, stopped: Mapping[int, EarlyStopped]) -> Tensor:
        """Undo what was done to members after they exceeded `target_kl`; returns the corrected metrics `[M, K]`."""
        for member, saved in stopped.items():
            self.update.load(member, saved.update)
            restore_stream(self.streams["shuffle"][member], saved.shuffle_rng)
            metrics[member] = saved.metrics
        return metrics

    def gradient_steps(self) -> int:
        return super().gradient_steps() * self.spec.epochs * self._num_minibatches()

    def _num_minibatches(self) -> int:
        """Minibatches per epoch; a minibatch of sequences holds at least one."""
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
