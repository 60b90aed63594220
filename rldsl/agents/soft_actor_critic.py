"""Base class of SAC and CrossQ: a maximum-entropy policy, two critics and a learned temperature alpha."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.base import AgentContext
from rldsl.agents.gradient_learner import as_array
from rldsl.agents.off_policy import OffPolicyAgent
from rldsl.agents.update import Batch, Update
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
    """Trains two critics towards the soft Q-function, and the policy on E[alpha log pi(a|s) - min_i Q_i(s, a)].

    A subclass defines the critics' loss. Main loop: `OffPolicyAgent.iterate`.
    """

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
        self.critic_metrics = torch.full((self.members, len(self.critic_names)), torch.nan)
        self.policy_metrics = torch.full((self.members, len(self.names) + 1), torch.nan)

    def train_on_batch(self, frame: int, lr: Tensor, max_grad_norm: Tensor, batch: Batch) -> Tensor:
        """A gradient step of the critics and, every `policy_delay` steps, one of the policy and alpha."""
        critic_lr = lr if self.spec.critic_lr is None else self.coefficients.tensor("critic_lr", frame)
        coefficients = self.critic_coefficients(frame)
        self.critic_metrics = self.critics(critic_lr, max_grad_norm, coefficients, self.critic_batch(batch))
        if self.updates % self.spec.policy_delay == 0:
            policy_batch = {"observation": batch["observation"], "critics": self.critics.flat}
            if not self.actions.discrete:
                policy_batch["noise"] = batch["noise"]
            policy_coefficients = {"target_entropy": self.target_entropy}
            self.policy_metrics = self.update(lr, max_grad_norm, policy_coefficients, policy_batch)
        return self.policy_metrics

    @abstractmethod
    def critic_loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """The loss `[M]` of both critics, and the metrics `critic_names` `[M, K]`."""

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """E[alpha log pi(a|s) - Q(s, a)] for the policy, log alpha (H - target entropy) for alpha."""
        policy, statistics = self.train_policy(params, batch["observation"])
        alpha, critics = params["log_alpha"].exp().detach(), self.twins.views(batch["critics"])
        if self.actions.discrete:
            log_probs = policy.log_softmax(-1)  # type: ignore[union-attr]
            q = combine_critics(self.twins.values(critics, batch["observation"]), self.spec.critic_reduction)
            loss, entropy = expected_soft_actor_loss(log_probs, q, alpha), -(log_probs.exp() * log_probs).sum(-1)
        else:
            action, log_prob = sample_action(policy, batch["noise"])
            q = combine_critics(self.twins.q(critics, batch["observation"], action), self.spec.critic_reduction)
            loss, entropy = soft_actor_loss(log_prob, q, alpha), -log_prob
        metrics = torch.cat([torch.stack([loss, member_mean(entropy), alpha], 1), statistics], 1)
        if self.spec.alpha is None:
            loss = loss + temperature_loss(params["log_alpha"], entropy, coefficients["target_entropy"])
        return loss, metrics

    def train_policy(self, params: Params, observation: Tensor) -> tuple[Policy, Tensor]:
        """The policy in training mode, and the new running statistics `[M, S]` of its layers, if they have any."""
        return self.network.policy(params, observation), observation.new_empty((self.members, 0), dtype=torch.float32)

    @abstractmethod
    def critic_batch(self, batch: Batch) -> Batch:
        """A minibatch for `critic_loss`, with the parameters of the networks that it reads but does not train."""

    def critic_coefficients(self, frame: int) -> Batch:
        """The coefficients that `critic_loss` and `after_critics` read."""
        return {}

    def after_critics(self, pieces: Params, batch: Batch, coefficients: Batch) -> None:
        """Part of the critics' update, after the optimizer step: `pieces` are their new parameters."""

    @abstractmethod
    def build_critics(self) -> Twins:
        """Both critics of each member."""

    def build_network(self) -> PolicyNetwork:
        return PolicyNetwork.build(self.spec.net, self.context.spaces)

    def draw_noise(self, rng: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        return self.actions.noise(rng, steps, num_envs)

    def select_action(self, policy_output: NumpyPolicy, exploration: np.ndarray) -> np.ndarray:
        return self.actions.to_env(sample(policy_output, exploration))

    def allocate_batch(self, count: int) -> dict[str, np.ndarray]:
        """Continuous actions are sampled in the losses: `next_noise` for a' in s', `noise` for the policy's in s."""
        batch = super().allocate_batch(count)
        if not self.actions.discrete:
            shape = (count, self.members, self.spec.batch, self.actions.size)
            batch |= {name: np.empty(shape, np.float32) for name in ("next_noise", "noise")}
        return batch

    def fill_batch(self, batch: dict[str, np.ndarray], count: int, frame: int) -> None:
        super().fill_batch(batch, count, frame)
        if not self.actions.discrete:
            for noise in (batch["next_noise"], batch["noise"]):
                for member, rng in enumerate(self.streams["noise"]):
                    noise[:, member] = rng.standard_normal(noise[:, member].shape, np.float32)

    def _init_alpha(self) -> Tensor:
        specs: Any = self.context.specs
        return torch.tensor([spec.alpha or spec.init_alpha for spec in specs], device=self.device)

    def _target_entropy(self) -> Tensor:
        """`[M]`; by default -dim(A) for continuous actions, and `entropy_ratio` log|A| for discrete ones."""
        specs: Any = self.context.specs
        size = self.actions.size
        defaults = [spec.entropy_ratio * np.log(size) if self.actions.discrete else -size for spec in specs]
        chosen = [
            default if spec.target_entropy is None else spec.target_entropy
            for spec, default in zip(specs, defaults, strict=True)
        ]
        return torch.tensor(chosen, dtype=torch.float32, device=self.device)

    def extra_metrics(self, frame: int) -> dict[str, np.ndarray]:
        return dict(zip(self.critic_names, self._latest_critic_metrics.T, strict=True))

    @property
    def _latest_critic_metrics(self) -> np.ndarray:
        return as_array(self.critic_metrics)[:, : len(self.critic_names)]

    def diverged(self) -> np.ndarray:
        diverged: np.ndarray = super().diverged() | ~torch.isfinite(self.critics.flat.sum(1)).cpu().numpy()
        return diverged

    def reset_diverged(self, member: int) -> None:
        super().reset_diverged(member)
        for tensor in (self.critics.flat, *self.critics.state.values()):
            tensor[member] = 0.0

    def state(self, member: int) -> dict[str, Any]:
        latest = {"policy": self.loss_metrics(self.policy_metrics), "critics": self._latest_critic_metrics}
        return super().state(member) | {
            "critics": self.critics.save(member),
            "latest_metrics": {name: metrics[member].copy() for name, metrics in latest.items()},
        }

    def initialize(self, member: int, state: Mapping[str, Any]) -> None:
        """The best policy has no critics: they start with random weights then."""
        super().initialize(member, state)
        if "critics" in state:
            self.critics.load(member, {"flat": state["critics"]["flat"]})

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.critics.load(member, state["critics"])
        policy, critics = self.loss_metrics(self.policy_metrics), self._latest_critic_metrics.copy()
        policy[member], critics[member] = state["latest_metrics"]["policy"], state["latest_metrics"]["critics"]
        self.policy_metrics, self.critic_metrics = torch.from_numpy(policy), torch.from_numpy(critics)


def sample_action(policy: Policy, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Reparameterised actions tanh(mean + std * noise), noise `[M, B, A]`, and their log-probability `[M, B]`."""
    gaussian: Any = policy
    action, pre_tanh = squashed_gaussian_sample(gaussian.mean, gaussian.log_std, noise)
    return action, squashed_gaussian_log_prob(gaussian.mean, gaussian.log_std, pre_tanh)
