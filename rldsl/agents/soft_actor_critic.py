"""What SAC and CrossQ share: a policy that two critics judge, rewarded for its entropy with the weight alpha."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.contract import AgentContext
from rldsl.agents.gradient_learner import as_array
from rldsl.agents.off_policy import Batch, OffPolicyAgent
from rldsl.agents.update import Update
from rldsl.maths.distributions import squashed_gaussian_log_prob, squashed_gaussian_sample
from rldsl.maths.members import member_mean
from rldsl.maths.off_policy_losses import combine_critics, expected_soft_actor_loss, soft_actor_loss, temperature_loss
from rldsl.nets.acting import NumpyPolicy
from rldsl.nets.critic import Twins
from rldsl.nets.heads import Policy
from rldsl.nets.layout import Params
from rldsl.nets.policy_network import PolicyNetwork
from rldsl.nets.sampling import sample
from rldsl.spec.off_policy import SoftActorCritic

A = TypeVar("A", bound=SoftActorCritic)


class SoftAgent(OffPolicyAgent[A]):
    """A subclass says what the critics learn towards."""

    network: PolicyNetwork
    names = ("policy_loss", "entropy", "alpha")
    critic_names = ("value_loss", "q")
    columns = (*names, *critic_names, "grad_norm", "lr")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.target_entropy = self._target_entropy()
        self.update.flat[:, self.network.layout.slice_of("log_alpha")] = self._init_alpha().log().unsqueeze(1)
        self.twins = self.build_critics()
        flat = self.twins.init(self.streams["init"]).to(self.device)
        self.critics = Update(
            self.twins.layout,
            flat,
            self.spec.optimizer,
            self.critic_loss,
            self.update.compilation,
            self.cache_key("critic_loss"),
            views=self.twins.views,
            after_step=self.after_critics,
        )
        self._noise = dict.fromkeys(("next_noise", "noise"), np.empty(0, np.float32))
        self.critic_metrics = torch.full((self.members, len(self.critic_names)), torch.nan)
        self.policy_metrics = torch.full((self.members, len(self.names) + 1), torch.nan)

    def build_network(self) -> PolicyNetwork:
        return PolicyNetwork.build(self.spec.net, self.context.spaces)

    @abstractmethod
    def build_critics(self) -> Twins:
        """Both critics of each member."""

    def improve(self, frame: int, rates: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        """The critics learn from every batch, the policy from every `policy_delay`-th."""
        lr, max_norm = rates
        critic_lr = lr if self.spec.critic_lr is None else self.coefficients.one("critic_lr", frame)
        coefficients = self.critic_coefficients(frame)
        self.critic_metrics = self.critics(critic_lr, max_norm, coefficients, self.critic_batch(batch))
        if self.updates % self.spec.policy_delay == 0:
            kept = {name: batch[name] for name in ("observation", "noise") if name in batch}
            batch = {**kept, "critics": self.critics.flat}
            self.policy_metrics = self.update(lr, max_norm, {"target_entropy": self.target_entropy}, batch)
        return self.policy_metrics

    def critic_coefficients(self, frame: int) -> Batch:
        """What `critic_loss` and `after_critics` need of them."""
        return {}

    def after_critics(self, pieces: Params, batch: Batch, coefficients: Batch) -> None:
        """Follows on a step of the critics, whose parameters are `pieces` now."""

    @abstractmethod
    def critic_batch(self, batch: Batch) -> Batch:
        """What `critic_loss` reads: a batch, and the networks that it does not move."""

    @abstractmethod
    def critic_loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """Of both critics' parameters, the loss `[M]` and the metrics of `critic_names`, `[M, K]`."""

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """E[alpha * log pi - q], and of alpha: the entropy shall be the one aimed at."""
        policy, kept = self.train_policy(params, batch["observation"])
        alpha, critics = params["log_alpha"].exp().detach(), self.twins.views(batch["critics"])
        if self.actions.discrete:
            log_probs = policy.log_softmax(-1)  # type: ignore[union-attr]
            q = combine_critics(self.twins.values(critics, batch["observation"]), self.spec.critic_reduction)
            loss, entropy = expected_soft_actor_loss(log_probs, q, alpha), -(log_probs.exp() * log_probs).sum(-1)
        else:
            action, log_prob = act(policy, batch["noise"])
            q = combine_critics(self.twins.q(critics, batch["observation"], action), self.spec.critic_reduction)
            loss, entropy = soft_actor_loss(log_prob, q, alpha), -log_prob
        metrics = torch.cat([torch.stack([loss, member_mean(entropy), alpha], 1), kept], 1)
        if self.spec.alpha is None:
            loss = loss + temperature_loss(params["log_alpha"], entropy, coefficients["target_entropy"])
        return loss, metrics

    def train_policy(self, params: Params, observation: Tensor) -> tuple[Policy, Tensor]:
        """The policy as it is trained, and what else is to be kept of that, `[M, S]`."""
        return self.network.policy(params, observation), observation.new_empty((self.members, 0), dtype=torch.float32)

    def noise(self, random: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        return self.actions.noise(random, steps, num_envs)

    def choose(self, said: NumpyPolicy, chance: np.ndarray) -> np.ndarray:
        return self.actions.to_env(sample(said, chance))

    def draw(self, count: int, frame: int) -> dict[str, np.ndarray]:
        """Continuous actions also need noise, for the next action and for the policy's own."""
        drawn = super().draw(count, frame)
        if not self.actions.discrete:
            drawn |= self._draw_noise(count)
        return drawn

    def _draw_noise(self, count: int) -> dict[str, np.ndarray]:
        """`[count, M, B, A]` each, in the memory of the last call if that was for as many."""
        if len(self._noise["noise"]) != count:
            shape = (count, self.members, self.spec.batch, self.actions.size)
            self._noise = {name: np.empty(shape, np.float32) for name in self._noise}
        for noise in self._noise.values():
            for member, random in enumerate(self.streams["noise"]):
                noise[:, member] = random.standard_normal(noise[:, member].shape, np.float32)
        return self._noise

    def _init_alpha(self) -> Tensor:
        specs: Any = self.context.specs
        return torch.tensor([one.alpha or one.init_alpha for one in specs], device=self.device)

    def _target_entropy(self) -> Tensor:
        """Minus the dimensions of continuous actions, or a part of the greatest entropy that discrete ones can have."""
        specs, size = self.context.specs, self.actions.size
        own: Any = (lambda one: one.entropy_ratio * np.log(size)) if self.actions.discrete else lambda one: -size
        chosen = [own(one) if one.target_entropy is None else one.target_entropy for one in specs]  # type: ignore[attr-defined]
        return torch.tensor(chosen, dtype=torch.float32, device=self.device)

    def more(self, frame: int) -> dict[str, np.ndarray]:
        return dict(zip(self.critic_names, self._critic_metrics.T, strict=True))

    @property
    def _critic_metrics(self) -> np.ndarray:
        return as_array(self.critic_metrics)[:, : len(self.critic_names)]

    def diverged(self) -> np.ndarray:
        return super().diverged() | ~torch.isfinite(self.critics.flat.sum(1)).cpu().numpy()

    def reset_diverged(self, member: int) -> None:
        super().reset_diverged(member)
        for tensor in (self.critics.flat, *self.critics.state.values()):
            tensor[member] = 0.0

    def state(self, member: int) -> dict[str, Any]:
        said = {"policy": self.metrics_of(self.policy_metrics), "critics": self._critic_metrics}
        return super().state(member) | {
            "critics": self.critics.save(member),
            "said": {name: metrics[member].copy() for name, metrics in said.items()},
        }

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.critics.load(member, state["critics"])
        said = {"policy": self.metrics_of(self.policy_metrics), "critics": self._critic_metrics.copy()}
        for name, metrics in said.items():
            metrics[member] = state["said"][name]
        self.policy_metrics, self.critic_metrics = map(torch.from_numpy, said.values())


def act(policy: Policy, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Actions by their noise `[M, B, A]`, and their log-probability `[M, B]`; gradients flow through both."""
    gaussian: Any = policy
    action, before = squashed_gaussian_sample(gaussian.mean, gaussian.log_std, noise)
    return action, squashed_gaussian_log_prob(gaussian.mean, gaussian.log_std, before)
