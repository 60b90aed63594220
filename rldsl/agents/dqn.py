"""Deep Q-learning (Mnih et al. 2015): double (van Hasselt et al. 2016), dueling (Wang et al. 2016), prioritized (Schaul
et al. 2016) and with n-step returns as options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.contract import AgentContext
from rldsl.agents.off_policy import Batch, OffPolicyAgent
from rldsl.maths.losses import huber
from rldsl.maths.members import member_mean
from rldsl.maths.off_policy_losses import huber_td_loss
from rldsl.maths.returns import double_q_target, q_learning_target
from rldsl.maths.schedules import value_at
from rldsl.maths.target_networks import soft_update
from rldsl.nets.acting import NumpyPolicy
from rldsl.nets.layout import Params
from rldsl.nets.q_network import QNetwork
from rldsl.nets.sampling import explorations, gumbel_noise
from rldsl.spec.off_policy import DQN

MOST_TOGETHER = 8
"""Steps of one compiled call: each makes compiling longer, and saves less than the one before it."""


class DQNAgent(OffPolicyAgent[DQN]):
    """Learns q(s, a) towards r + gamma * max q(s', .), the latter by a network that follows at a distance."""

    network: QNetwork
    names = ("value_loss", "q")
    columns = (*names, "grad_norm", "lr", "explore")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.target = self.update.flat.clone()

    def build_network(self) -> QNetwork:
        return QNetwork.build(self.spec.net, self.context.spaces, dueling=self.spec.dueling)

    def improve(self, frame: int, rates: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        metrics = self.update(*rates, {"target": self.target}, batch)
        if self.replay.priorities is not None:
            self._prioritize(batch["index"], metrics[..., len(self.names) : -1])
        if self.updates % self.spec.target_every == 0:
            soft_update(self.target, self.update.flat, self.coefficients.one("tau", frame))
        return metrics if self.update.together == 1 else metrics[-1]

    def steps_together(self) -> int:
        """Those of one vector step, as far as the target stays where it is between them."""
        due, whole = self.spec.updates_per_frame * self.num_envs, self.spec.learning_starts % self.num_envs == 0
        common = gcd(int(due), self.spec.target_every) if whole and due == int(due) else 1
        return max(count for count in range(1, MOST_TOGETHER + 1) if common % count == 0)

    def _prioritize(self, index: Tensor, error: Tensor) -> None:
        """One batch after the other: what stands in two of them has the priority that the later one gave it."""
        for at, of in zip(index.view(-1, *index.shape[-2:]), error.view(-1, *error.shape[-2:]), strict=True):
            self.replay.prioritize(at.cpu().numpy(), of.cpu().numpy())

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """Huber's of q(s, a) - target, by importance; metrics, and behind them the errors of prioritized replay."""
        target = self._target(params, batch)
        q = self.network.q(params, batch["observation"]).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        if self.spec.prioritized is None:
            loss = member_mean(huber(q - target))
            return loss, torch.stack([loss, member_mean(q)], 1)
        loss = huber_td_loss(q, target, batch["weight"])
        return loss, torch.cat([torch.stack([loss, member_mean(q)], 1), (q - target).abs()], 1)

    def before_steps(self, batch: Batch, coefficients: Batch) -> Batch:
        """Adds q'(s', .), by the network that follows at a distance; it is the same for all steps of a call."""
        seen, target = batch["next_observation"], self.network.layout.views(coefficients["target"])
        if self.update.together == 1:
            return {**batch, "next_q": self.network.q(target, seen)}
        next_q = self.network.q(target, seen.transpose(0, 1).flatten(1, 2))
        return {**batch, "next_q": next_q.unflatten(1, (self.update.together, -1)).transpose(0, 1)}

    def _target(self, params: Params, batch: Batch) -> Tensor:
        """r + gamma^n * (1 - terminated) * q'(s', a'), a' the best by q' itself or, when double, by q; no gradient."""
        reward, terminated, discount = batch["reward"], batch["terminated"], batch["discount"]
        if not self.spec.double:
            return q_learning_target(reward, batch["next_q"], terminated, discount).detach()
        online = self.network.q({name: part.detach() for name, part in params.items()}, batch["next_observation"])
        return double_q_target(reward, batch["next_q"], online, terminated, discount).detach()

    def noise(self, random: np.random.Generator, steps: int, num_envs: int) -> np.ndarray:
        if self.spec.explore == "epsilon":
            return random.random((steps, num_envs), np.float32)
        return gumbel_noise(random.random((steps, num_envs, self.actions.size), np.float32))

    def chances(self, noise: np.ndarray, frames: Sequence[int]) -> Iterable[Any]:
        """Where not the best action is taken, but which one; or temperatures, and noise."""
        rates = np.array([self.coefficients.numbers(self._explorer, frame) for frame in frames], np.float32)[..., None]
        if self.spec.explore == "epsilon":
            return zip(*explorations(noise, rates, self.actions.size), strict=True)
        return zip(rates[..., None], noise, strict=True)

    def choose(self, said: NumpyPolicy, chance: Any) -> np.ndarray:
        values = np.asarray(said)
        if self.spec.explore == "epsilon":
            explores, action = chance
            return np.where(explores, action, values.argmax(-1))
        temperature, noise = chance
        return (values / temperature + noise).argmax(-1)

    @property
    def _explorer(self) -> str:
        return "epsilon" if self.spec.explore == "epsilon" else "temperature"

    def beta(self, frame: int) -> np.ndarray | None:
        if self.spec.prioritized is None:
            return None
        return np.full(self.members, value_at(self.spec.prioritized.beta, frame, self.context.frames))

    def more(self, frame: int) -> dict[str, np.ndarray]:
        return {"explore": np.array(self.coefficients.numbers(self._explorer, frame))}

    def state(self, member: int) -> dict[str, Any]:
        return super().state(member) | {"target": self.target[member].cpu().numpy().copy()}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.target[member] = torch.from_numpy(np.array(state["target"])).to(self.device)
