"""TD3: two critics, noise in their targets, and a deterministic policy that is updated less often."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from rldsl.extend import (
    AgentContext,
    Batch,
    Critic,
    Gaussian,
    Head,
    Network,
    OffPolicyAgent,
    Params,
    Trunk,
    Twins,
    Update,
    build_trunk,
    critics_loss,
    member_mean,
    scope,
    soft_update,
    td_target,
)


@dataclass(frozen=True)
class DeterministicPolicy(Network):
    """tanh of a linear layer on a trunk. The base class makes flat parameters of its parts."""

    trunk: Trunk
    head: Head

    @classmethod
    def build(cls, net: Any, spaces: Any) -> Self:
        trunk = build_trunk(net, spaces.observation_shape)
        return cls(trunk, Head(trunk.features, prod(spaces.action.shape), net.init, 0.01))

    @property
    def parts(self) -> Mapping[str, Any]:
        return {"trunk.": self.trunk, "": self.head}

    @property
    def state_size(self) -> int:
        return 0

    @property
    def acting_state_size(self) -> int:
        return 0

    def before_tanh(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        return self.head.forward(params, self.trunk.forward(scope(params, "trunk."), obs))

    def act(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Any, Tensor]:
        """A Gaussian of which only the mean is used; the base class applies tanh."""
        mean = self.before_tanh(params, obs)
        return Gaussian(mean, torch.zeros_like(mean)), state


class TD3Agent(OffPolicyAgent):
    """Main loop, replay buffer and acting are those of `OffPolicyAgent.iterate`."""

    names = ("policy_loss",)
    columns = (*names, "value_loss", "q", "grad_norm", "lr")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.twins = Twins(Critic.build(self.spec.net, context.spaces), self.update.split)
        self.critics = Update(
            self.twins.layout,
            self.twins.init(self.streams["init"]).to(self.device),
            self.spec.optimizer,
            self.critic_loss,
            self.update.compilation,
            views=self.twins.views,
        )
        self.targets = {"policy": self.update.flat.clone(), "critics": self.critics.flat.clone()}
        self.policy_metrics = torch.full((self.members, 2), torch.nan)
        self.critic_metrics = torch.full((self.members, 3), torch.nan)

    def build_network(self) -> DeterministicPolicy:
        return DeterministicPolicy.build(self.spec.net, self.context.spaces)

    def train_on_batch(self, frame: int, lr: Tensor, max_grad_norm: Tensor, batch: Batch) -> Tensor:
        self.critic_metrics = self.critics(lr, max_grad_norm, {}, {**batch, **self.targets})
        if self.updates % self.spec.policy_delay == 0:
            inputs = {"observation": batch["observation"], "critics": self.critics.flat}
            self.policy_metrics = self.update(lr, max_grad_norm, {}, inputs)
            tau = self.coefficients.tensor("tau", frame)
            soft_update(self.targets["policy"], self.update.flat, tau)
            soft_update(self.targets["critics"], self.critics.flat, tau)
        return self.policy_metrics

    def critic_loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """(Q_i(s, a) - r - gamma min_j Q_target,j(s', a'))^2, with a' = pi_target(s') + clipped noise."""
        next_observation, spec = batch["next_observation"], self.spec
        policy, critics = self.network.layout.views(batch["policy"]), self.twins.views(batch["critics"])
        noise = (spec.target_noise * batch["noise"]).clamp(-spec.noise_clip, spec.noise_clip)
        next_action = (self.network.before_tanh(policy, next_observation).tanh() + noise).clamp(-1.0, 1.0)
        next_q = self.twins.q(critics, next_observation, next_action).amin(1)
        target = td_target(batch["reward"], next_q, batch["terminated"], batch["discount"]).detach()
        q = self.twins.q(params, batch["observation"], batch["action"])
        loss = critics_loss(q, target)
        return loss, torch.stack([loss, member_mean(q.flatten(1))], 1)

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """-Q_1(s, pi(s))."""
        action = self.network.before_tanh(params, batch["observation"]).tanh()
        q = self.twins.q(self.twins.views(batch["critics"]), batch["observation"], action)[:, 0]
        loss = -member_mean(q)
        return loss, loss.unsqueeze(1)

    # Exploration, and noise for the targets: each member draws from its own RNG

    def draw_noise(self, rng: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        return rng.standard_normal((steps, num_envs, self.actions.size), np.float32)

    def select_action(self, policy_output: Any, exploration: np.ndarray) -> np.ndarray:
        return np.clip(np.tanh(policy_output.mean) + self.spec.noise * exploration, -1.0, 1.0)

    def allocate_batch(self, count: int) -> dict[str, np.ndarray]:
        shape = (count, self.members, self.spec.batch, self.actions.size)
        return {**super().allocate_batch(count), "noise": np.empty(shape, np.float32)}

    def fill_batch(self, batch: dict[str, np.ndarray], count: int, frame: int) -> None:
        super().fill_batch(batch, count, frame)
        for member, rng in enumerate(self.streams["noise"]):
            batch["noise"][:, member] = rng.standard_normal(batch["noise"][:, member].shape, np.float32)

    # Metrics, divergence and checkpoints of what the base class does not know

    def extra_metrics(self, frame: int) -> dict[str, np.ndarray]:
        value_loss, q, _ = self.critic_metrics.cpu().numpy().T
        return {"value_loss": value_loss, "q": q}

    def diverged(self) -> np.ndarray:
        return super().diverged() | ~torch.isfinite(self.critics.flat.sum(1)).cpu().numpy()

    def reset_diverged(self, member: int) -> None:
        super().reset_diverged(member)
        for tensor in (self.critics.flat, *self.critics.state.values()):
            tensor[member] = 0.0

    def state(self, member: int) -> dict[str, Any]:
        own = {"policy_metrics": self.policy_metrics, "critic_metrics": self.critic_metrics, **self.targets}
        saved = {name: tensor[member].cpu().numpy().copy() for name, tensor in own.items()}
        return super().state(member) | {"critics": self.critics.save(member), "td3": saved}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.critics.load(member, state["critics"])
        own = {"policy_metrics": self.policy_metrics, "critic_metrics": self.critic_metrics, **self.targets}
        for name, array in state["td3"].items():
            own[name][member] = torch.from_numpy(np.array(array)).to(self.device)
