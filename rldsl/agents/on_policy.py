"""What the policy-gradient algorithms share: rollouts of the current policy, evaluated once as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from rldsl.agents.contract import AgentContext, Policy, World
from rldsl.agents.gradient_learner import GradientLearner
from rldsl.agents.policies import ActionSpace
from rldsl.maths.streams import stream
from rldsl.memory.rollout import Rollout
from rldsl.nets.acting import make_actor
from rldsl.nets.actor_critic import ActorCritic, Unrolled
from rldsl.nets.layout import Params
from rldsl.nets.sampling import greedy, sample
from rldsl.spec.agent import OnPolicy

S = TypeVar("S", bound=OnPolicy)

READ = ("observation", "action", "reward", "terminated", "ended", "starts")


class OnPolicyAgent(GradientLearner[S]):
    """Collects rollouts with the current policy; a subclass says what is learned from them."""

    network: ActorCritic

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.actions = ActionSpace(context.spaces.action, self.spec.squash)
        self.rollout = Rollout(self.spec.rollout, self.members, self.num_envs, context.spaces, self.actions.shape)
        self.critic_sees = "observation" if self.rollout.critic_observation is None else "critic_observation"
        """What of a rollout the value is read off."""
        self.starts = np.ones((self.members, self.num_envs), bool)
        self.memory = torch.zeros(self.members, self.num_envs, self.network.state_size, device=self.device)

    def with_critic(self, names: Sequence[str]) -> list[str]:
        """The names, and that of what the critic sees."""
        return list(dict.fromkeys((*names, self.critic_sees)))

    def gradient_steps(self) -> int:
        return self.context.frames // (self.spec.rollout * self.num_envs)

    def build_network(self) -> ActorCritic:
        return ActorCritic.build(self.spec.net, self.context.spaces, log_std=self.spec.log_std)

    def collect(self, world: World) -> Rollout | None:
        """Acts for T steps; None if the budget ended on the way, with nothing left to learn for."""
        rollout = self.rollout
        rollout.clear()
        self.actor.refresh(self.update.flat)
        draws = [self.actions.noise(random, rollout.steps, self.num_envs) for random in self.streams["act"]]
        for t, noise in enumerate(np.stack(draws, 1)):
            rollout.observation[t] = self.normalization.observe(self.by_member(world.observation))
            if rollout.critic_observation is not None:
                rollout.critic_observation[t] = self.normalization.observe_as_critic(self._seen_by_critic(world))
            rollout.starts[t] = self.starts
            action = sample(self.actor(rollout.observation[t], self.starts if self.recurrent else None), noise)
            rollout.action[t] = action
            step = world.step(self.actions.to_env(action).reshape(-1, *self.actions.shape))
            rollout.write(t, step, self.normalization.reward(step))
            self.starts = rollout.ended[t]
            if world.exhausted:
                return None
        self.starts = self.starts.copy()  # the next rollout is written over this one
        self.last = self.normalization.look_as_critic(self._seen_by_critic(world))
        return rollout

    def _seen_by_critic(self, world: World) -> np.ndarray:
        return self.by_member(getattr(world, self.critic_sees))

    @torch.no_grad()
    def evaluate(self, rollout: Rollout) -> dict[str, Tensor]:
        """Values, once over the whole rollout, and the value of what really came next."""
        params = self.network.layout.views(self.update.flat)
        data = {name: rollout.tensor(getattr(rollout, name), self.device) for name in self.with_critic(READ)}
        last = torch.from_numpy(self.last).to(self.device)
        value_all = self._value_sequences if self.recurrent else self._value_transitions
        data["value"], after, states = value_all(params, data, last)
        data["next_value"] = torch.cat([data["value"][:, 1:], after.unsqueeze(1)], 1)
        self._value_truncations(rollout, params, data["next_value"], states)
        return data

    def _value_transitions(
        self, params: Params, data: Mapping[str, Tensor], last: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values `[M, T, N]`, and those `[M, N]` after them, in one pass."""
        observations = torch.cat([data[self.critic_sees], last.unsqueeze(1)], 1)
        values = self.network.value(params, observations.flatten(1, 2)).reshape(observations.shape[:3])
        return values[:, :-1], values[:, -1], self.memory

    def _value_sequences(
        self, params: Params, data: Mapping[str, Tensor], last: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same with a memory, in which the next rollout goes on."""
        _, value, states = self.unroll(params, data)
        after = self._value_after(params, last, states[:, -1], data["ended"][:, -1])
        self.next_memory = states[:, -1]
        return value, after, states

    def unroll(self, params: Params, data: Mapping[str, Tensor]) -> Unrolled:
        """What the network says of a rollout `[M, T, N]`, from the memory in which it began."""
        seen = data["observation"], data["starts"]
        return self.network.unroll(params, *seen, self.memory, data[self.critic_sees])

    def _value_after(self, params: Params, observation: Tensor, state: Tensor, starts: Tensor) -> Tensor:
        """The value `[M, N]` of the observations that follow a state."""
        return self.network.unroll_value(params, observation.unsqueeze(1), starts.unsqueeze(1), state).squeeze(1)

    def _value_truncations(self, rollout: Rollout, params: Params, next_value: Tensor, states: Tensor) -> None:
        """Where a time limit cut an episode, what came next is its own last observation."""
        cut = rollout.truncations()
        for member in np.unique(cut.member):
            chosen = cut.member == member
            step, env = cut.step[chosen], cut.env[chosen]
            last = cut.critic_observation[chosen]
            seen = np.zeros((self.members, *last.shape), last.dtype)
            seen[member] = last
            observation = torch.from_numpy(self.normalization.look_as_critic(seen)).to(self.device)
            if self.recurrent:
                state = states[:, step, env]
                going_on = torch.zeros(state.shape[:2], dtype=torch.bool, device=self.device)
                value = self._value_after(params, observation, state, going_on)
            else:
                value = self.network.value(params, observation)
            next_value[member, step, env] = value[member]

    def remember(self) -> None:
        """The next rollout goes on with the memory in which this one ended."""
        if self.recurrent:
            self.memory = self.next_memory

    def forget_episodes(self) -> None:
        self.starts[:] = True

    def policy(self, num_envs: int, deterministic: bool, seeds: list[int]) -> Policy:
        actor = make_actor(self.network, self.update.flat.clone(), num_envs)
        streams = [stream(seed, "evaluate") for seed in seeds]

        def act(observation: np.ndarray, starts: np.ndarray) -> np.ndarray:
            said = actor(self.normalization.look(observation), starts if self.recurrent else None)
            if deterministic:
                return self.actions.to_env(greedy(said))
            noise = np.stack([self.actions.noise(random, 1, num_envs)[0] for random in streams])
            return self.actions.to_env(sample(said, noise))

        return act

    def state(self, member: int) -> dict[str, Any]:
        kept = {"starts": self.starts[member].copy(), "memory": self.memory[member].cpu().numpy().copy()}
        return super().state(member) | kept

    def restore(self, member: int, state: Mapping[str, Any]) -> None:
        super().restore(member, state)
        self.starts[member] = state["starts"]
        self.memory[member] = torch.from_numpy(np.array(state["memory"])).to(self.device)


def shuffled(streams: list[np.random.Generator], count: int, size: int) -> Iterator[Tensor]:
    """Minibatches of indices `[M, size]`: each member's own permutation of `count` items."""
    order = torch.from_numpy(np.stack([random.permutation(count) for random in streams]))
    return iter(torch.split(order, size, 1))
