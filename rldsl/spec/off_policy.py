"""Agents that learn from replayed transitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from annotated_types import Gt
from pydantic import Field

from rldsl.spec.agent import Agent
from rldsl.spec.base import Count, Flag, Fraction, Natural, PerMember, Positive, Real, Spec
from rldsl.spec.net import MLP, Net
from rldsl.spec.optimizer import Adam, Optimizer
from rldsl.spec.schedule import FractionRate, Linear, NonNegativeRate, PositiveRate

if TYPE_CHECKING:
    from rldsl.spec.budget import Budget
    from rldsl.spec.environment import Environment

RELU = MLP((256, 256), activation="relu")


class Prioritized(Spec, frozen=True):
    """Replay by how wrong a transition was last: Schaul et al. (2016)."""

    alpha: Fraction = Field(default=0.6, description="Prioritization exponent")
    beta: FractionRate = Field(default=Linear(0.4, 1.0), description="Importance-sampling exponent")


class OffPolicy(Agent, frozen=True):
    """What the off-policy algorithms have in common: a replay buffer, and how often it is learned from."""

    remembers: ClassVar[bool] = False

    gamma: Annotated[Fraction, PerMember] = Field(default=0.99, description="Discount")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=3e-4, description="Learning rate")
    updates_per_frame: Positive = Field(default=1.0, description="Gradient steps for each frame")
    batch: Count = Field(default=256, description="Transitions of one gradient step")
    buffer: Count = Field(default=100_000, description="Transitions kept")
    learning_starts: Natural = Field(default=1_000, description="Frames of random actions before the first update")
    n_step: Count = Field(default=1, description="Rewards summed before a value takes over")
    include_newest: Flag = Field(default=False, description="The newest transitions are in every batch")
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(default=None, description="Maximum gradient norm")
    net: Net = Field(default=RELU, description="Network of the policy, or of the values that are one")
    optimizer: Optimizer = Field(default=Adam(eps=1e-8), description="Optimizer")

    def updates(self, frames: int) -> int:
        """Gradient steps in so many frames."""
        return max(0, int((frames - self.learning_starts) * self.updates_per_frame))

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        yield from super().problems(env, budget)
        name = type(self).__name__
        if self.buffer < self.batch:
            yield f"{name}.buffer = {self.buffer} holds less than one {name}.batch = {self.batch}"
        if self.buffer < env.num_envs:
            yield f"{name}.buffer = {self.buffer} holds less than one step of num_envs = {env.num_envs}"
        if budget is not None and not self.updates(budget.frames):
            starts = f"{name}.learning_starts = {self.learning_starts}"
            yield f"frames = {budget.frames} leaves no update after {starts}: nothing is learned"


class DQN(OffPolicy, frozen=True):
    """Deep Q-learning: Mnih et al. (2015); double, dueling and prioritized as options."""

    kind: Literal["dqn"] = "dqn"
    implementation: ClassVar[str] = "rldsl.agents.dqn:DQNAgent"
    actions: ClassVar[frozenset[str]] = frozenset({"discrete"})

    double: Flag = Field(default=False, description="The online network chooses the target's action")
    dueling: Flag = Field(default=False, description="Value and advantage in streams of their own")
    prioritized: Prioritized | None = Field(default=None, description="Prioritized replay; none: uniform")
    explore: Literal["epsilon", "boltzmann"] = Field(default="epsilon", description="How actions are drawn from values")
    epsilon: Annotated[FractionRate, PerMember] = Field(
        default=Linear(1.0, 0.05, over=0.1), description="Chance of a random action, where exploring by epsilon"
    )
    temperature: Annotated[PositiveRate, PerMember] = Field(
        default=Linear(1.0, 0.1), description="Of the softmax over values, where exploring by boltzmann"
    )
    tau: Annotated[Fraction, PerMember, Gt(0)] = Field(
        default=1.0, description="How far the target network moves to the online one; 1: a copy"
    )
    target_every: Count = Field(default=100, description="Gradient steps between two moves of the target network")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=1e-3, description="Learning rate")
    batch: Count = Field(default=64, description="Transitions of one gradient step")
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(default=10.0, description="Maximum gradient norm")


class SoftActorCritic(OffPolicy, frozen=True):
    """What SAC and CrossQ share: two critics, a policy that is rewarded for its entropy, a temperature."""

    buffer: Count = Field(default=1_000_000, description="Transitions kept")
    critic_net: Net | None = Field(default=None, description="Network of each critic; none: as `net`")
    critic_lr: Annotated[NonNegativeRate | None, PerMember] = Field(
        default=None, description="Learning rate of the critics; none: as `lr`"
    )
    alpha: Annotated[Positive | None, PerMember] = Field(
        default=None, description="Weight of the entropy; none: learned, towards the target entropy"
    )
    init_alpha: Annotated[Positive, PerMember] = Field(default=1.0, description="Where a learned weight begins")
    target_entropy: Annotated[Real | None, PerMember] = Field(
        default=None, description="Entropy aimed at; none: minus the number of continuous actions' dimensions"
    )
    entropy_ratio: Annotated[Fraction, PerMember] = Field(
        default=0.6, description="Of discrete actions' greatest entropy, what is aimed at where nothing else is said"
    )
    critic_reduction: Literal["min", "mean"] = Field(
        default="min", description="What two critics say together; the mean helps discrete actions"
    )
    critic_entropy: Flag = Field(default=True, description="Whether the critics' targets hold the entropy too")
    policy_delay: Count = Field(default=1, description="Gradient steps of the critics for one of the policy")


class SAC(SoftActorCritic, frozen=True):
    """Soft actor-critic: Haarnoja et al. (2018); of discrete actions: Christodoulou (2019)."""

    kind: Literal["sac"] = "sac"
    implementation: ClassVar[str] = "rldsl.agents.sac:SACAgent"

    tau: Annotated[Fraction, PerMember, Gt(0)] = Field(
        default=0.005, description="How far the target critics move in a gradient step"
    )


class CrossQ(SoftActorCritic, frozen=True):
    """SAC without target networks, on batch renormalisation: Bhatt et al. (2024)."""

    kind: Literal["crossq"] = "crossq"
    implementation: ClassVar[str] = "rldsl.agents.crossq:CrossQAgent"

    lr: Annotated[NonNegativeRate, PerMember] = Field(default=1e-3, description="Learning rate")
    policy_delay: Count = Field(default=3, description="Gradient steps of the critics for one of the policy")
    critic_net: Net | None = Field(
        default=MLP((1024, 1024), activation="relu"), description="Network of each critic; none: as `net`"
    )
    optimizer: Optimizer = Field(default=Adam(betas=(0.5, 0.999), eps=1e-8), description="Optimizer")
    momentum: Annotated[Fraction, Gt(0)] = Field(default=0.01, description="Of the running statistics")
    renorm_after: Natural = Field(
        default=100_000, description="Gradient steps of plain batch normalisation before renormalisation"
    )
