"""Deep Q-learning (Mnih et al. 2015), optionally double (van Hasselt et al. 2016, arXiv:1509.06461), dueling (Wang et
al. 2016, arXiv:1511.06581), with prioritized replay (Schaul et al. 2016, arXiv:1511.05952) and n-step returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.base import AgentContext
from rldsl.agents.off_policy import OffPolicyAgent
from rldsl.agents.update import Batch
from rldsl.maths.losses import huber
from rldsl.maths.members import member_mean
from rldsl.maths.off_policy_losses import huber_td_loss
from rldsl.maths.returns import double_q_target, q_learning_target
from rldsl.maths.schedules import value_at
from rldsl.maths.target_networks import soft_update
from rldsl.nets.acting import NumpyPolicy
from rldsl.nets.layout import Params
from rldsl.nets.q_network import QNetwork
from rldsl.nets.sampling import epsilon_greedy_noise, gumbel_noise
from rldsl.spec.off_policy import DQN

MAX_STEPS_PER_CALL = 8
"""Gradient steps in one compiled call at most: each makes compilation longer and saves less than the one before."""


class DQNAgent(OffPolicyAgent[DQN]):
    """Minimises the Huber loss of Q(s, a) - r - gamma max_a' Q_target(s', a').

    The target network is updated every `target_every` gradient steps. Main loop: `OffPolicyAgent.iterate`.
    """

    network: QNetwork
    names = ("value_loss", "q")
    columns = (*names, "grad_norm", "lr", "explore")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.target = self.update.flat.clone()

    def train_on_batch(self, frame: int, lr: Tensor, max_grad_norm: Tensor, batch: Batch) -> Tensor:
        """A gradient step, new priorities, and the target network where it is due."""
        metrics = self.update(lr, max_grad_norm, {"target": self.target}, batch)
        if self.replay.priorities is not None:
            self._update_priorities(batch["index"], metrics[..., len(self.names) : -1])
        if self.updates % self.spec.target_every == 0:
            soft_update(self.target, self.update.flat, self.coefficients.tensor("tau", frame))
        return metrics if self.update.steps_per_call == 1 else metrics[-1]

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """Huber loss of Q(s, a) - target. With prioritized replay, weighted, and the TD errors follow the metrics."""
        target = self._td_target(params, batch)
        q = self.network.q(params, batch["observation"]).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        if self.spec.prioritized is None:
            loss = member_mean(huber(q - target))
            return loss, torch.stack([loss, member_mean(q)], 1)
        loss = huber_td_loss(q, target, batch["weight"])
        return loss, torch.cat([torch.stack([loss, member_mean(q)], 1), (q - target).abs()], 1)

    def _td_target(self, params: Params, batch: Batch) -> Tensor:
        """r + gamma^n (1 - terminated) Q_target(s', a'), with a' = argmax Q_target(s', .) or, in double Q-learning,
        argmax Q(s', .)."""
        reward, terminated, discount = batch["reward"], batch["terminated"], batch["discount"]
        if not self.spec.double:
            return q_learning_target(reward, batch["next_q"], terminated, discount).detach()
        online = self.network.q({name: part.detach() for name, part in params.items()}, batch["next_observation"])
        return double_q_target(reward, batch["next_q"], online, terminated, discount).detach()

    def prepare_batch(self, batch: Batch, coefficients: Batch) -> Batch:
        """Add `next_q`, Q_target(s', .): one pass for all gradient steps of a call, as the target does not change."""
        next_observation, target = batch["next_observation"], self.network.layout.views(coefficients["target"])
        if self.update.steps_per_call == 1:
            return {**batch, "next_q": self.network.q(target, next_observation)}
        next_q = self.network.q(target, next_observation.transpose(0, 1).flatten(1, 2))
        return {**batch, "next_q": torch.unflatten(next_q, 1, (self.update.steps_per_call, -1)).transpose(0, 1)}

    def steps_per_call(self) -> int:
        """Gradient steps per compiled call: those of one vector step, if the target network stays the same for them.

        With 4 environments, 1 update per frame and `target_every=100`, the 4 updates of a vector step are one call.
        With `target_every=6` it is 2, since the target network is updated after every sixth step.
        """
        per_vector_step = self.spec.updates_per_frame * self.num_envs
        if not per_vector_step.is_integer() or self.spec.learning_starts % self.num_envs:
            return 1
        common = gcd(int(per_vector_step), self.spec.target_every)
        return max(count for count in range(1, MAX_STEPS_PER_CALL + 1) if common % count == 0)

    def _update_priorities(self, index: Tensor, error: Tensor) -> None:
        """In the order of the minibatches: a transition in two of them keeps the later priority."""
        indices, errors = index.view(-1, *index.shape[-2:]), error.view(-1, *error.shape[-2:])
        for batch_index, batch_error in zip(indices, errors, strict=True):
            self.replay.prioritize(batch_index.cpu().numpy(), batch_error.cpu().numpy())

    def importance_exponent(self, frame: int) -> np.ndarray | None:
        if self.spec.prioritized is None:
            return None
        return np.full(self.members, value_at(self.spec.prioritized.beta, frame, self.context.frames))

    # Exploration: epsilon-greedy or Boltzmann

    def draw_noise(self, rng: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        if self.spec.explore == "epsilon":
            return rng.random((steps, num_envs), np.float32)
        return gumbel_noise(rng.random((steps, num_envs, self.actions.size), np.float32))

    def exploration(self, noise: np.ndarray, frames: Sequence[int]) -> Iterable[Any]:
        """(whether to explore, random action) if epsilon-greedy, else (temperature, Gumbel noise), at each frame."""
        schedule = [self.coefficients.floats(self._explore_field, frame) for frame in frames]
        values = np.array(schedule, np.float32)[..., None]
        if self.spec.explore == "epsilon":
            return zip(*epsilon_greedy_noise(noise, values, self.actions.size), strict=True)
        return zip(values[..., None], noise, strict=True)

    def select_action(self, policy_output: NumpyPolicy, exploration: Any) -> np.ndarray:
        q = np.asarray(policy_output)
        if self.spec.explore == "epsilon":
            explore, random_action = exploration
            return np.asarray(np.where(explore, random_action, q.argmax(-1)))
        temperature, noise = exploration
        return np.asarray((q / temperature + noise).argmax(-1))

    @property
    def _explore_field(self) -> str:
        return "epsilon" if self.spec.explore == "epsilon" else "temperature"

    def extra_metrics(self, frame: int) -> dict[str, np.ndarray]:
        return {"explore": np.array(self.coefficients.floats(self._explore_field, frame))}

    def build_network(self) -> QNetwork:
        return QNetwork.build(self.spec.net, self.context.spaces, dueling=self.spec.dueling)

    def state(self, member: int) -> dict[str, Any]:
        return super().state(member) | {"target": self.target[member].cpu().numpy().copy()}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.target[member] = torch.from_numpy(np.array(state["target"])).to(self.device)

    def initialize(self, member: int, state: Mapping[str, Any]) -> None:
        super().initialize(member, state)
        self.target[member] = self.update.flat[member]
