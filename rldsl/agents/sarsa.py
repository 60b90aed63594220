"""SARSA with a Q-network (Rummery & Niranjan 1994): on-policy temporal-difference control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.base import AgentContext, Policy, World
from rldsl.agents.gradient_learner import GradientLearner
from rldsl.agents.update import Batch
from rldsl.maths.distributions import boltzmann_probabilities, epsilon_greedy_probabilities
from rldsl.maths.losses import value_loss
from rldsl.maths.members import member_mean
from rldsl.maths.returns import td_target
from rldsl.maths.streams import stream
from rldsl.memory.rollout import RolloutBuffer
from rldsl.nets.acting import NumpyPolicy, make_actor
from rldsl.nets.layout import Params
from rldsl.nets.q_network import QNetwork
from rldsl.nets.sampling import greedy
from rldsl.spec.agent import Sarsa

ROLLOUT_FIELDS = ("observation", "action", "reward", "terminated")


class SarsaAgent(GradientLearner[Sarsa]):
    """One gradient step per rollout on (Q(s, a) - r - gamma Q(s', a'))^2, with a' the action taken next in s'."""

    network: QNetwork
    names = ("value_loss", "q")
    columns = (*names, "grad_norm", "lr", "explore")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.rollout = RolloutBuffer(self.spec.rollout, self.members, self.num_envs, context.spaces, ())
        self.next_action: np.ndarray | None = None
        """The action `[M, N]` already selected for `next_observation`; None before the first step."""

    def iterate(self, world: World) -> None:
        rollout = self._collect(world)
        if rollout is None:
            return
        batch = self._compute_targets(world.frame, rollout)
        metrics = self.learn(world.frame, batch, {})
        self.record_metrics(world.frame, metrics, explore=self._exploration(world.frame))

    def _collect(self, world: World) -> RolloutBuffer | None:
        """Act for T steps and select the action after them. None if the frame budget ran out before."""
        rollout = self.rollout
        rollout.clear()
        self.actor.refresh(self.update.flat)
        if self.next_action is None:
            self._select_next_action(world)
        for t in range(rollout.steps):
            assert self.next_action is not None
            rollout.observation[t], rollout.action[t] = self.next_observation, self.next_action
            step = self.normalization.normalize_finals(world.step(self.next_action.reshape(-1)))
            rollout.write(t, step, step.reward.reshape(self.members, self.num_envs))
            self._select_next_action(world)
            if world.exhausted and t + 1 < rollout.steps:
                return None
        return rollout

    def _select_next_action(self, world: World) -> None:
        observation = self.normalization.update_and_normalize(self.rows_to_members(world.observation))
        self.next_observation = np.array(observation, np.uint8 if observation.dtype == np.uint8 else np.float32)
        self.next_action = self._sample(self.actor(self.next_observation), world.frame, self.streams["act"])

    def _sample(self, q: NumpyPolicy, frame: int, rngs: list[np.random.Generator]) -> np.ndarray:
        """Actions `[M, N]` from the exploration policy, by inverting its cumulative distribution."""
        cumulative = self._probabilities(torch.from_numpy(np.asarray(q)), frame).numpy().cumsum(-1)
        uniform = np.stack([rng.random((cumulative.shape[1], 1), np.float32) for rng in rngs])
        action: np.ndarray = np.minimum((cumulative < uniform).sum(-1), cumulative.shape[-1] - 1)
        return action

    def _probabilities(self, q: Tensor, frame: int) -> Tensor:
        """The exploration policy: epsilon-greedy or Boltzmann."""
        exploration = self._exploration(frame).cpu()
        if self.spec.explore == "epsilon":
            return epsilon_greedy_probabilities(q, exploration)
        return boltzmann_probabilities(q, exploration)

    def _exploration(self, frame: int) -> Tensor:
        """Epsilon or temperature `[M]` at a frame."""
        return self.coefficients.tensor("epsilon" if self.spec.explore == "epsilon" else "temperature", frame)

    @torch.no_grad()
    def _compute_targets(self, frame: int, rollout: RolloutBuffer) -> dict[str, Tensor]:
        """Transitions `[M, T * N, ...]` with the target r + gamma Q(s', a').

        Where a time limit truncated an episode there is no a': Q is replaced by its expectation under the policy.
        """
        assert self.next_action is not None
        params = self.network.layout.views(self.update.flat)
        data = {name: rollout.tensor(name, self.device) for name in ROLLOUT_FIELDS}
        next_observation, next_action = (
            torch.cat([data[name][:, 1:], torch.from_numpy(last).to(self.device).unsqueeze(1)], 1)
            for name, last in (("observation", self.next_observation), ("action", self.next_action))
        )
        q = self.network.q(params, next_observation.flatten(1, 2)).reshape(*next_action.shape, -1)
        next_value = q.gather(-1, next_action.unsqueeze(-1)).squeeze(-1)
        self._bootstrap_truncated(frame, rollout, params, next_value)
        target = td_target(data["reward"], next_value, data["terminated"], self.coefficients.tensor("gamma", frame))
        return {
            "observation": data["observation"].flatten(1, 2),
            "action": data["action"].flatten(1, 2),
            "target": target.flatten(1),
        }

    def _bootstrap_truncated(self, frame: int, rollout: RolloutBuffer, params: Params, next_value: Tensor) -> None:
        """Where a time limit truncated an episode, set `next_value` to E_pi[Q(s', .)] at its final observation."""
        truncated = rollout.truncations()
        for member in np.unique(truncated.member):
            mine = truncated.member == member
            final = truncated.observation[mine]
            observations = np.zeros((self.members, *final.shape), final.dtype)
            observations[member] = final
            q = self.network.q(params, torch.from_numpy(observations).to(self.device)).cpu()
            expected = (self._probabilities(q, frame) * q).sum(-1)
            next_value[member, truncated.step[mine], truncated.env[mine]] = expected[member].to(self.device)

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """(Q(s, a) - target)^2."""
        q = self.network.q(params, batch["observation"]).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        loss = value_loss(q, batch["target"])
        return loss, torch.stack([loss, member_mean(q)], 1)

    def gradient_steps(self) -> int:
        return self.context.frames // (self.spec.rollout * self.num_envs)

    def build_network(self) -> QNetwork:
        return QNetwork.build(self.spec.net, self.context.spaces)

    def forget_episodes(self) -> None:
        self.next_action = None

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        actor = make_actor(self.network, self.update.flat.clone(), num_envs)
        rngs = [stream(seed, "evaluate") for seed in seeds]

        def act(observation: np.ndarray, starts: np.ndarray) -> np.ndarray:
            q = actor(self.normalization.normalize(observation))
            return greedy(q) if deterministic else self._sample(q, self.context.frames, rngs)

        return act

    def state(self, member: int) -> dict[str, Any]:
        selected = None
        if self.next_action is not None:
            selected = {"action": self.next_action[member], "observation": self.next_observation[member]}
        return super().state(member) | {"next": selected}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        saved = state["next"]
        if saved is None:
            return
        if self.next_action is None:
            self.next_action = np.zeros((self.members, self.num_envs), np.int64)
            self.next_observation = np.zeros((self.members, *saved["observation"].shape), saved["observation"].dtype)
        self.next_action[member], self.next_observation[member] = saved["action"], saved["observation"]
