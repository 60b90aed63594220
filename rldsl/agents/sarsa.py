"""SARSA (Rummery & Niranjan 1994) with a network: the value of the action that is really taken next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.contract import AgentContext, Policy, World
from rldsl.agents.gradient_learner import GradientLearner
from rldsl.agents.update import Batch
from rldsl.maths.distributions import boltzmann_probabilities, epsilon_greedy_probabilities
from rldsl.maths.losses import value_loss
from rldsl.maths.members import member_mean
from rldsl.maths.returns import td_target
from rldsl.maths.streams import stream
from rldsl.memory.rollout import Rollout
from rldsl.nets.acting import NumpyPolicy, make_actor
from rldsl.nets.layout import Params
from rldsl.nets.q_network import QNetwork
from rldsl.nets.sampling import greedy
from rldsl.spec.agent import Sarsa


class SarsaAgent(GradientLearner[Sarsa]):
    """Acts for a rollout, chooses the action after it, and learns towards r + gamma Q(s', a')."""

    network: QNetwork
    names = ("value_loss", "q")
    columns = (*names, "grad_norm", "lr", "explore")

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.rollout = Rollout(self.spec.rollout, self.members, self.num_envs, context.spaces, ())
        self.chosen: np.ndarray | None = None
        """The action that was chosen for the present observation, `[M, N]`; it is the one that will be taken."""

    def gradient_steps(self) -> int:
        return self.context.frames // (self.spec.rollout * self.num_envs)

    def build_network(self) -> QNetwork:
        return QNetwork.build(self.spec.net, self.context.spaces)

    def iterate(self, world: World) -> None:
        rollout = self._collect(world)
        if rollout is None:
            return
        batch = self._targets(world.frame, rollout)
        explore = self._exploration(world.frame)
        self.record_metrics(world.frame, self.learn(world.frame, batch, {}), explore=explore)

    def _collect(self, world: World) -> Rollout | None:
        rollout = self.rollout
        rollout.clear()
        self.actor.refresh(self.update.flat)
        if self.chosen is None:
            self.observed = self._observe(world)
            self.chosen = self._choose(world.frame, self.observed)
        for t in range(rollout.steps):
            rollout.observation[t], rollout.action[t] = self.observed, self.chosen
            step = world.step(self.chosen.reshape(-1))
            rollout.write(t, step, step.reward.reshape(self.chosen.shape))
            self.observed = self._observe(world)
            self.chosen = self._choose(world.frame, self.observed)
            if world.exhausted:
                return None
        return rollout

    def _observe(self, world: World) -> np.ndarray:
        rows = world.observation
        seen = self.normalization.observe(rows.reshape(self.members, self.num_envs, *rows.shape[1:]))
        return np.array(seen, np.uint8 if seen.dtype == np.uint8 else np.float32)

    def _choose(self, frame: int, observation: np.ndarray) -> np.ndarray:
        """One draw a row from the probabilities of the actions."""
        return self._draw(self.actor(observation), frame, self.streams["act"])

    def _draw(self, q: NumpyPolicy, frame: int, streams: list[np.random.Generator]) -> np.ndarray:
        cumulative = self._probabilities(torch.from_numpy(np.asarray(q)), frame).numpy().cumsum(-1)
        uniform = np.stack([random.random((cumulative.shape[1], 1), np.float32) for random in streams])
        drawn: np.ndarray = np.minimum((cumulative < uniform).sum(-1), cumulative.shape[-1] - 1)
        return drawn

    def _probabilities(self, q: Tensor, frame: int) -> Tensor:
        rate = self._exploration(frame).cpu()
        return (
            epsilon_greedy_probabilities(q, rate)
            if self.spec.explore == "epsilon"
            else boltzmann_probabilities(q, rate)
        )

    def _exploration(self, frame: int) -> Tensor:
        return self.coefficients.one("epsilon" if self.spec.explore == "epsilon" else "temperature", frame)

    @torch.no_grad()
    def _targets(self, frame: int, rollout: Rollout) -> dict[str, Tensor]:
        """r + gamma Q(s', a'); where a time limit cut an episode, what the policy expects at its last observation."""
        assert self.chosen is not None
        params = self.network.layout.views(self.update.flat)
        after = torch.from_numpy(self.observed).to(self.device).unsqueeze(1)
        data = {name: rollout.tensor(getattr(rollout, name), self.device) for name in _READ}
        observations = torch.cat([data["observation"][:, 1:], after], 1)
        actions = torch.cat([data["action"][:, 1:], torch.from_numpy(self.chosen).to(self.device).unsqueeze(1)], 1)
        q = self.network.q(params, observations.flatten(1, 2)).reshape(*actions.shape, -1)
        following = q.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        self._value_truncations(frame, rollout, params, following)
        target = td_target(data["reward"], following, data["terminated"], self.coefficients.one("gamma", frame))
        flat = {name: data[name].flatten(1, 2) for name in ("observation", "action")}
        return flat | {"target": target.flatten(1)}

    def _value_truncations(self, frame: int, rollout: Rollout, params: Params, following: Tensor) -> None:
        cut = rollout.truncations()
        for member in np.unique(cut.member):
            mine = cut.member == member
            seen = np.zeros((self.members, int(mine.sum()), *cut.observation.shape[1:]), cut.observation.dtype)
            seen[member] = cut.observation[mine]
            q = self.network.q(params, torch.from_numpy(self.normalization.look(seen)).to(self.device)).cpu()
            expected = (self._probabilities(q, frame) * q).sum(-1)
            following[member, cut.step[mine], cut.env[mine]] = expected[member].to(self.device)

    def loss(self, params: Params, batch: Batch, coefficients: Batch) -> tuple[Tensor, Tensor]:
        """(Q(s, a) - target)^2."""
        q = self.network.q(params, batch["observation"]).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        error = value_loss(q, batch["target"])
        return error, torch.stack([error, member_mean(q)], 1)

    def forget_episodes(self) -> None:
        self.chosen = None

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        actor = make_actor(self.network, self.update.flat.clone(), num_envs)
        streams = [stream(seed, "evaluate") for seed in seeds]

        def act(observation: np.ndarray, starts: np.ndarray) -> np.ndarray:
            q = actor(self.normalization.look(observation))
            return greedy(q) if deterministic else self._draw(q, self.context.frames, streams)

        return act

    def state(self, member: int) -> dict[str, Any]:
        chosen = None if self.chosen is None else {"action": self.chosen[member], "observed": self.observed[member]}
        return super().state(member) | {"chosen": chosen}

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        saved = state["chosen"]
        if saved is None:
            return
        if self.chosen is None:
            self.chosen = np.zeros((self.members, self.num_envs), np.int64)
            self.observed = np.zeros((self.members, *saved["observed"].shape), saved["observed"].dtype)
        self.chosen[member], self.observed[member] = saved["action"], saved["observed"]


_READ = ("observation", "action", "reward", "terminated")
