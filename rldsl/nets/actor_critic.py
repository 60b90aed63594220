"""Actor-critic network: a policy and a value function, on separate trunks or on a shared one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from rldsl.envs.contract import Spaces
from rldsl.nets.heads import Head, Policy, policy_head, unflatten_policy
from rldsl.nets.layout import scope
from rldsl.nets.network import Network, Part
from rldsl.nets.trunk import Trunk, build_trunk
from rldsl.spec.errors import SpecError
from rldsl.spec.net import Net


class Unrolled(NamedTuple):
    """Outputs of an actor-critic for sequences `[M, T, N]`."""

    policy: Policy
    """`[M, T, N, A]`; a state-independent `log_std` is `[M, 1, 1, A]`."""
    value: Tensor
    """`[M, T, N]`."""
    states: Tensor
    """Recurrent states `[M, T, N, S]` after each observation."""


@dataclass(frozen=True)
class ActorCritic(Network):
    """Parameters are named `actor.…` and `critic.…`, those of a shared trunk `trunk.…`.

    `policy`, `value` and `policy_and_value` take independent observations `[M, B, *shape]`; `unroll` and `unroll_value`
    take sequences and also work for recurrent trunks. The recurrent state is that of the actor's trunk followed by that
    of the critic's. The critic reads `critic_obs` where it is given, else `obs`.
    """

    actor: Trunk
    critic: Trunk | None
    """None if the trunk is shared."""
    policy_head: Head
    value_head: Head

    @classmethod
    def build(
        cls,
        net: Net,
        spaces: Spaces,
        *,
        critic_net: Net | None = None,
        shared: bool = False,
        log_std: float | None = 0.0,
        policy_gain: float = 0.01,
        value_gain: float = 1.0,
    ) -> Self:
        """`critic_net` defaults to `net`; `log_std` as in `policy_head`; the gains are those of the heads' weights."""
        if shared and spaces.critic_shape is not None:
            raise SpecError("shared=True is for a critic that sees what the policy sees, and here it sees more")
        actor = build_trunk(net, spaces.observation_shape)
        critic_net = net if shared or critic_net is None else critic_net
        critic_shape = spaces.observation_shape if spaces.critic_shape is None else spaces.critic_shape
        critic = None if shared else build_trunk(critic_net, critic_shape)
        return cls(
            actor,
            critic,
            policy_head(actor.features, spaces.action, log_std, net.init, policy_gain),
            Head((critic or actor).features, 1, critic_net.init, value_gain),
        )

    @property
    def parts(self) -> Mapping[str, Part]:
        critic = {} if self.critic is None else {"critic.trunk.": self.critic}
        return {self.actor_prefix: self.actor, "actor.": self.policy_head, **critic, "critic.": self.value_head}

    @property
    def actor_prefix(self) -> str:
        """Prefix of the parameters of the actor's trunk."""
        return "trunk." if self.critic is None else "actor.trunk."

    @property
    def state_size(self) -> int:
        return self.acting_state_size + (0 if self.critic is None else self.critic.state_size)

    @property
    def acting_state_size(self) -> int:
        return self.actor.state_size

    def policy(self, params: Mapping[str, Tensor], obs: Tensor) -> Policy:
        """Logits `[M, B, A]`, or a Gaussian."""
        return self._policy(params, self.actor.forward(scope(params, self.actor_prefix), obs))

    def value(self, params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
        """`[M, B]`."""
        if self.critic is None:
            return self._value(params, self.actor.forward(scope(params, self.actor_prefix), obs))
        return self._value(params, self.critic.forward(scope(params, "critic.trunk."), obs))

    def policy_and_value(
        self, params: Mapping[str, Tensor], obs: Tensor, critic_obs: Tensor | None = None
    ) -> tuple[Policy, Tensor]:
        """Policy and value, with a single pass through a shared trunk."""
        features = self.actor.forward(scope(params, self.actor_prefix), obs)
        if self.critic is None:
            return self._policy(params, features), self._value(params, features)
        return self._policy(params, features), self.value(params, obs if critic_obs is None else critic_obs)

    def act(self, params: Mapping[str, Tensor], obs: Tensor, state: Tensor) -> tuple[Policy, Tensor]:
        features, state = self.actor.step(scope(params, self.actor_prefix), obs, state)
        return self._policy(params, features), state

    def unroll(
        self,
        params: Mapping[str, Tensor],
        obs: Tensor,
        starts: Tensor,
        state: Tensor,
        critic_obs: Tensor | None = None,
    ) -> Unrolled:
        """Policy and value of sequences `[M, T, N, *shape]` from the state `[M, N, S]`; see `Trunk.unroll`."""
        actor_state, critic_state = self._split(state)
        features, states = self.actor.unroll(scope(params, self.actor_prefix), obs, starts, actor_state)
        policy = unflatten_policy(self._policy(params, features.flatten(1, 2)), starts.shape[1:])
        if self.critic is not None:
            critic_obs = obs if critic_obs is None else critic_obs
            features, critic_states = self.critic.unroll(
                scope(params, "critic.trunk."), critic_obs, starts, critic_state
            )
            states = torch.cat((states, critic_states), -1)
        return Unrolled(policy, self._value_of_sequences(params, features), states)

    def unroll_value(self, params: Mapping[str, Tensor], obs: Tensor, starts: Tensor, state: Tensor) -> Tensor:
        """The value `[M, T, N]` of sequences of the critic's observations."""
        actor_state, critic_state = self._split(state)
        if self.critic is None:
            features, _ = self.actor.unroll(scope(params, self.actor_prefix), obs, starts, actor_state)
        else:
            features, _ = self.critic.unroll(scope(params, "critic.trunk."), obs, starts, critic_state)
        return self._value_of_sequences(params, features)

    def _split(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the actor's and of the critic's trunk."""
        return state[..., : self.acting_state_size], state[..., self.acting_state_size :]

    def _value_of_sequences(self, params: Mapping[str, Tensor], features: Tensor) -> Tensor:
        return torch.unflatten(self._value(params, features.flatten(1, 2)), 1, features.shape[1:3])

    def _policy(self, params: Mapping[str, Tensor], features: Tensor) -> Policy:
        policy: Policy = self.policy_head.forward(scope(params, "actor."), features)
        return policy

    def _value(self, params: Mapping[str, Tensor], features: Tensor) -> Tensor:
        value: Tensor = self.value_head.forward(scope(params, "critic."), features)
        return value.squeeze(-1)
