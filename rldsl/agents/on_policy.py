"""Base class of the on-policy algorithms: collect a rollout with the current policy and estimate its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.action_space import ActionSpace
from rldsl.agents.base import AgentContext, Policy, World
from rldsl.agents.gradient_learner import GradientLearner
from rldsl.maths.streams import stream
from rldsl.memory.rollout import RolloutBuffer
from rldsl.nets.acting import make_actor
from rldsl.nets.actor_critic import ActorCritic, Unrolled
from rldsl.nets.layout import Params
from rldsl.nets.sampling import greedy, sample
from rldsl.spec.agent import OnPolicy

S = TypeVar("S", bound=OnPolicy)

ROLLOUT_FIELDS = ("observation", "action", "reward", "terminated", "ended", "starts")


class OnPolicyAgent(GradientLearner[S]):
    """Collects rollouts of T steps with the current policy. A subclass defines `iterate` and the loss."""

    network: ActorCritic

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.actions = ActionSpace(context.spaces.action, self.spec.squash)
        self.rollout = RolloutBuffer(self.spec.rollout, self.members, self.num_envs, context.spaces, self.actions.shape)
        self.critic_input = "observation" if self.rollout.critic_observation is None else "critic_observation"
        """The rollout field that the critic reads."""
        self.starts = np.ones((self.members, self.num_envs), bool)
        """Whether the current observations are the first of an episode."""
        self.rnn_state = torch.zeros(self.members, self.num_envs, self.network.state_size, device=self.device)
        """Recurrent state `[M, N, S]` at the start of the current rollout."""

    def initial_parameters(self) -> Tensor:
        """Each member starts with its own `log_std`."""
        flat = super().initial_parameters()
        values = [spec.log_std for spec in cast("Sequence[OnPolicy]", self.context.specs)]
        for name, parameter in self.network.layout.views(flat).items():
            if name.endswith("log_std"):
                parameter.copy_(torch.tensor(values, dtype=flat.dtype)[:, None, None])
        return flat

    def gradient_steps(self) -> int:
        return self.context.frames // (self.spec.rollout * self.num_envs)

    def build_network(self) -> ActorCritic:
        return ActorCritic.build(self.spec.net, self.context.spaces, log_std=self.spec.log_std)

    def collect(self, world: World) -> RolloutBuffer | None:
        """Act for T steps. None if the frame budget ran out before the rollout was complete."""
        rollout = self.rollout
        rollout.clear()
        self.actor.refresh(self.update.flat)
        noise = np.stack([self.actions.noise(rng, rollout.steps, self.num_envs) for rng in self.streams["act"]], 1)
        for t in range(rollout.steps):
            self._observe(world, t)
            policy = self.actor(rollout.observation[t], self.starts if self.recurrent else None)
            action = sample(policy, noise[t])
            rollout.action[t] = action
            step = world.step(self.actions.to_env(action).reshape(-1, *self.actions.shape))
            step = self.normalization.normalize_finals(step)
            rollout.write(t, step, self.normalization.scale_reward(step))
            self.starts = rollout.ended[t]
            if world.exhausted and t + 1 < rollout.steps:
                return None
        self.starts = self.starts.copy()  # the next rollout overwrites the buffer
        self.last_observation = self.normalization.normalize_critic(self._critic_observation(world))
        return rollout

    def _observe(self, world: World, t: int) -> None:
        """Write the current observations, normalised, into step t of the rollout."""
        rollout = self.rollout
        rollout.observation[t] = self.normalization.update_and_normalize(self.rows_to_members(world.observation))
        if rollout.critic_observation is not None:
            critic_observation = self.normalization.update_and_normalize_critic(self._critic_observation(world))
            rollout.critic_observation[t] = critic_observation
        rollout.starts[t] = self.starts

    def _critic_observation(self, world: World) -> np.ndarray:
        return self.rows_to_members(getattr(world, self.critic_input))

    @torch.no_grad()
    def compute_values(self, rollout: RolloutBuffer) -> dict[str, Tensor]:
        """The rollout as tensors `[M, T, N, ...]`, with `value` V(s_t) and `next_value`, that of the true next state.

        At the end of the rollout and where a time limit truncated an episode, the next state is s_T or the final
        observation of that episode.
        """
        params = self.network.layout.views(self.update.flat)
        data = {name: rollout.tensor(name, self.device) for name in self.with_critic_input(ROLLOUT_FIELDS)}
        last_observation = torch.from_numpy(self.last_observation).to(self.device)
        values = self._values_recurrent if self.recurrent else self._values_feedforward
        data["value"], last_value, states = values(params, data, last_observation)
        data["next_value"] = torch.cat([data["value"][:, 1:], last_value.unsqueeze(1)], 1)
        self._bootstrap_truncated(rollout, params, data["next_value"], states)
        return data

    def _values_feedforward(
        self, params: Params, data: Mapping[str, Tensor], last_observation: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values `[M, T, N]`, the value `[M, N]` of the last observation, and (unused) recurrent states."""
        observations = torch.cat([data[self.critic_input], last_observation.unsqueeze(1)], 1)
        values = self.network.value(params, observations.flatten(1, 2)).reshape(observations.shape[:3])
        return values[:, :-1], values[:, -1], self.rnn_state

    def _values_recurrent(
        self, params: Params, data: Mapping[str, Tensor], last_observation: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same with a recurrent network, and its states `[M, T, N, S]` after each step."""
        _, values, states = self.unroll(params, data)
        last_value = self._next_value_recurrent(params, last_observation, states[:, -1], data["ended"][:, -1])
        self.next_rnn_state = states[:, -1]
        return values, last_value, states

    def unroll(self, params: Params, data: Mapping[str, Tensor]) -> Unrolled:
        """Policy, value and recurrent state over a rollout `[M, T, N]`, from the state in which it began."""
        observation, starts = data["observation"], data["starts"]
        return self.network.unroll(params, observation, starts, self.rnn_state, data[self.critic_input])

    def _next_value_recurrent(self, params: Params, observation: Tensor, state: Tensor, starts: Tensor) -> Tensor:
        """The value `[M, N]` of the observations that follow a recurrent state."""
        return self.network.unroll_value(params, observation.unsqueeze(1), starts.unsqueeze(1), state).squeeze(1)

    def _bootstrap_truncated(self, rollout: RolloutBuffer, params: Params, next_value: Tensor, states: Tensor) -> None:
        """Where a time limit truncated an episode, set `next_value` to the value of its final observation."""
        truncated = rollout.truncations()
        for member in np.unique(truncated.member):
            mine = truncated.member == member
            step, env = truncated.step[mine], truncated.env[mine]
            final = truncated.critic_observation[mine]
            observations = np.zeros((self.members, *final.shape), final.dtype)
            observations[member] = final
            observation = torch.from_numpy(observations).to(self.device)
            if self.recurrent:
                state = states[:, step, env]
                starts = torch.zeros(state.shape[:2], dtype=torch.bool, device=self.device)
                value = self._next_value_recurrent(params, observation, state, starts)
            else:
                value = self.network.value(params, observation)
            next_value[member, step, env] = value[member]

    def with_critic_input(self, names: Sequence[str]) -> list[str]:
        """The field names, and that of the critic's observation if it is not among them."""
        return list(dict.fromkeys((*names, self.critic_input)))

    def advance_rnn_state(self) -> None:
        """Start the next rollout in the recurrent state in which this one ended."""
        if self.recurrent:
            self.rnn_state = self.next_rnn_state

    def forget_episodes(self) -> None:
        self.starts[:] = True

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        actor = make_actor(self.network, self.update.flat.clone(), num_envs)
        rngs = [stream(seed, "evaluate") for seed in seeds]

        def act(observation: np.ndarray, starts: np.ndarray) -> np.ndarray:
            policy = actor(self.normalization.normalize(observation), starts if self.recurrent else None)
            if deterministic:
                return self.actions.to_env(greedy(policy))
            noise = np.stack([self.actions.noise(rng, 1, num_envs)[0] for rng in rngs])
            return self.actions.to_env(sample(policy, noise))

        return act

    def state(self, member: int) -> dict[str, Any]:
        own = {"starts": self.starts[member].copy(), "rnn_state": self.rnn_state[member].cpu().numpy().copy()}
        return super().state(member) | own

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.starts[member] = state["starts"]
        self.rnn_state[member] = torch.from_numpy(np.array(state["rnn_state"])).to(self.device)


def shuffled(rngs: list[np.random.Generator], count: int, size: int) -> Iterator[Tensor]:
    """Minibatches of indices `[M, size]`: a random permutation of `count` items for each member."""
    order = torch.from_numpy(np.stack([rng.permutation(count) for rng in rngs]))
    return iter(torch.split(order, size, 1))
