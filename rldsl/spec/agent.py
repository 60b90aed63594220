"""Agents: one model an algorithm. A user's own is a subclass of `Agent` with its `kind` and `implementation`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from annotated_types import Ge, Le
from pydantic import Field

from rldsl.spec.base import Count, Flag, Fraction, Kind, NonNegative, Positive, Real
from rldsl.spec.net import MLP, Net
from rldsl.spec.optimizer import Adam, Optimizer
from rldsl.spec.schedule import NonNegativeRate

if TYPE_CHECKING:
    from rldsl.spec.budget import Budget
    from rldsl.spec.environment import Environment


class Agent(Kind, frozen=True):
    """What learns, with every setting that its learning depends on."""

    actions: ClassVar[frozenset[str]] = frozenset({"discrete", "continuous"})
    """The kinds of action space that the algorithm can act in."""

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        """Sentences about settings that are fine alone and do not fit together."""
        if env.actions is not None and env.actions not in self.actions:
            able = " or ".join(sorted(self.actions))
            yield f"{type(self).__name__} needs {able} actions, and those of {env.label} are {env.actions}"


class Random(Agent, frozen=True):
    """Acts uniformly at random and learns nothing: the baseline of every score, and a test of all but learning."""

    kind: Literal["random"] = "random"
    implementation: ClassVar[str] = "rldsl.agents.random:RandomAgent"


class PPO(Agent, frozen=True):
    """Proximal policy optimisation: Schulman et al. (2017)."""

    kind: Literal["ppo"] = "ppo"
    implementation: ClassVar[str] = "rldsl.agents.ppo:PPOAgent"

    gamma: Fraction = Field(default=0.99, description="Discount")
    lam: Fraction = Field(default=0.95, description="Decay of generalised advantages")
    lr: NonNegativeRate = Field(default=3e-4, description="Learning rate")
    critic_lr: NonNegativeRate | None = Field(default=None, description="Learning rate of the critic; none: as `lr`")
    clip: NonNegativeRate = Field(default=0.2, description="Bound on the change of an action's probability ratio")
    entropy: NonNegativeRate = Field(default=0.0, description="Weight of the entropy bonus")
    value_coef: NonNegative = Field(default=0.5, description="Weight of the value loss")
    rollout: Count = Field(default=2048, description="Steps of each environment between two updates")
    minibatch: Count = Field(default=64, description="Transitions of one gradient step")
    epochs: Count = Field(default=10, description="Passes over each rollout")
    grad_clip: Positive | None = Field(default=0.5, description="Bound on the norm of the gradient")
    normalize_advantages: Flag = Field(default=True, description="Advantages of a minibatch to mean 0, deviation 1")
    recompute_advantages: Flag = Field(default=False, description="Advantages anew before each epoch")
    value_clip: Flag = Field(default=False, description="Clip the change of the value as that of the policy")
    value_target_scaling: Flag = Field(default=False, description="Value loss in units of the targets' deviation")
    target_kl: Positive | None = Field(default=None, description="End the epochs when the policy moved further")
    normalize_observations: Flag = Field(default=False, description="Observations to mean 0, deviation 1, within 10")
    normalize_rewards: Flag = Field(default=False, description="Rewards by the deviation of the discounted return")
    net: Net = Field(default=MLP((64, 64)), description="Network of the policy")
    critic_net: Net | None = Field(default=None, description="Network of the critic; none: as `net`")
    shared: Flag = Field(default=False, description="One trunk for policy and critic")
    log_std: Annotated[Real, Ge(-5), Le(2)] | None = Field(
        default=0.0, description="Initial log deviation of continuous actions; none: a head of the network gives it"
    )
    squash: Flag = Field(default=False, description="Continuous actions through tanh")
    optimizer: Optimizer = Field(default=Adam(), description="How a gradient becomes a step")

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        yield from super().problems(env, budget)
        batch = self.rollout * env.num_envs
        product = f"rollout * num_envs = {self.rollout} * {env.num_envs} = {batch}"
        if self.minibatch > batch:
            yield f"PPO.minibatch = {self.minibatch} is more than the batch of {product}"
        elif batch % self.minibatch:
            near = sorted(divisors(batch), key=lambda size: abs(size - self.minibatch))[:2]
            choices = " or ".join(str(size) for size in sorted(near))
            yield f"PPO.minibatch = {self.minibatch} does not divide the batch of {product}; {choices} would"
        if budget is not None and budget.frames < batch:
            yield f"frames = {budget.frames} is less than one batch of {product}: nothing would be learned"
        if self.shared and self.critic_net is not None:
            yield "PPO.critic_net is of no use with shared=True: the critic is a head on PPO.net"


def divisors(number: int) -> Iterator[int]:
    """All divisors of a positive number, in no order."""
    for small in range(1, int(number**0.5) + 1):
        if number % small == 0:
            yield small
            yield number // small
