"""Settings of the off-policy agents."""

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
    """Prioritized experience replay: Schaul et al. (2016)."""

    alpha: Fraction = Field(default=0.6, description="Prioritization exponent")
    beta: FractionRate = Field(default=Linear(0.4, 1.0), description="Importance-sampling exponent")


class OffPolicy(Agent, frozen=True):
    """Settings shared by the off-policy algorithms."""

    supports_recurrent: ClassVar[bool] = False

    gamma: Annotated[Fraction, PerMember] = Field(default=0.99, description="Discount factor")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=3e-4, description="Learning rate")
    updates_per_frame: Positive = Field(default=1.0, description="Gradient steps per frame")
    batch: Count = Field(default=256, description="Batch size of each gradient step")
    buffer: Count = Field(default=100_000, description="Size of the replay buffer")
    learning_starts: Natural = Field(default=1_000, description="Frames of random actions before the first update")
    n_step: Count = Field(default=1, description="Number of steps of the n-step return")
    include_newest: Flag = Field(
        default=False, description="Include the newest transitions in every batch: Zhang and Sutton (2017)"
    )
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(
        default=None, description="Maximum gradient norm; None: no clipping"
    )
    net: Net = Field(default=RELU, description="Policy network; of DQN the Q-network")
    optimizer: Optimizer = Field(default=Adam(eps=1e-8), description="Optimizer")

    def updates(self, frames: int) -> int:
        """The number of gradient steps after `frames` frames."""
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
    """Deep Q-learning: Mnih et al. (2015), with double, dueling and prioritized variants."""

    kind: Literal["dqn"] = "dqn"
    implementation: ClassVar[str] = "rldsl.agents.dqn:DQNAgent"
    actions: ClassVar[frozenset[str]] = frozenset({"discrete"})

    double: Flag = Field(default=False, description="Double Q-learning: van Hasselt et al. (2016)")
    dueling: Flag = Field(default=False, description="Dueling network: Wang et al. (2016)")
    prioritized: Prioritized | None = Field(
        default=None, description="Prioritized experience replay; None: uniform sampling"
    )
    explore: Literal["epsilon", "boltzmann"] = Field(
        default="epsilon", description="Exploration: epsilon-greedy or softmax"
    )
    epsilon: Annotated[FractionRate, PerMember] = Field(
        default=Linear(1.0, 0.05, over=0.1),
        description="Probability of a random action with epsilon-greedy exploration",
    )
    temperature: Annotated[PositiveRate, PerMember] = Field(
        default=Linear(1.0, 0.1), description="Softmax temperature with Boltzmann exploration"
    )
    tau: Annotated[Fraction, PerMember, Gt(0)] = Field(
        default=1.0, description="Coefficient of the soft update of the target network; 1: hard update"
    )
    target_every: Count = Field(default=100, description="Gradient steps between updates of the target network")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=1e-3, description="Learning rate")
    batch: Count = Field(default=64, description="Batch size of each gradient step")
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(
        default=10.0, description="Maximum gradient norm; None: no clipping"
    )

    @property
    def unused(self) -> frozenset[str]:
        return frozenset({"temperature" if self.explore == "epsilon" else "epsilon"})


class SoftActorCritic(OffPolicy, frozen=True):
    """Settings shared by SAC and CrossQ: twin critics and an entropy coefficient."""

    buffer: Count = Field(default=1_000_000, description="Size of the replay buffer")
    critic_net: Net | None = Field(default=None, description="Network of each critic; None: same as `net`")
    critic_lr: Annotated[NonNegativeRate | None, PerMember] = Field(
        default=None, description="Learning rate of the critics; None: same as `lr`"
    )
    alpha: Annotated[Positive | None, PerMember] = Field(
        default=None, description="Entropy coefficient; None: learned to reach the target entropy"
    )
    init_alpha: Annotated[Positive, PerMember] = Field(
        default=1.0, description="Initial value of a learned entropy coefficient"
    )
    target_entropy: Annotated[Real | None, PerMember] = Field(
        default=None,
        description="Target entropy; None: minus the action dimension, or for discrete actions as `entropy_ratio`",
    )
    entropy_ratio: Annotated[Fraction, PerMember] = Field(
        default=0.6, description="Target entropy of discrete actions as a fraction of the maximum entropy"
    )
    critic_reduction: Literal["min", "mean"] = Field(
        default="min", description="How the two critics are combined; the mean can help with discrete actions"
    )
    critic_entropy: Flag = Field(default=True, description="Include the entropy bonus in the targets of the critics")
    policy_delay: Count = Field(default=1, description="Gradient steps of the critics per gradient step of the policy")


class SAC(SoftActorCritic, frozen=True):
    """Soft actor-critic: Haarnoja et al. (2018); for discrete actions: Christodoulou (2019)."""

    kind: Literal["sac"] = "sac"
    implementation: ClassVar[str] = "rldsl.agents.sac:SACAgent"

    tau: Annotated[Fraction, PerMember, Gt(0)] = Field(
        default=0.005, description="Coefficient of the soft update of the target critics"
    )


class CrossQ(SoftActorCritic, frozen=True):
    """SAC with batch renormalization instead of target networks: Bhatt et al. (2024)."""

    kind: Literal["crossq"] = "crossq"
    implementation: ClassVar[str] = "rldsl.agents.crossq:CrossQAgent"

    lr: Annotated[NonNegativeRate, PerMember] = Field(default=1e-3, description="Learning rate")
    policy_delay: Count = Field(default=3, description="Gradient steps of the critics per gradient step of the policy")
    critic_net: Net | None = Field(
        default=MLP((1024, 1024), activation="relu"), description="Network of each critic; None: same as `net`"
    )
    optimizer: Optimizer = Field(default=Adam(betas=(0.5, 0.999), eps=1e-8), description="Optimizer")
    momentum: Annotated[Fraction, Gt(0)] = Field(default=0.01, description="Momentum of the running batch statistics")
    renorm_after: Natural = Field(
        default=100_000, description="Gradient steps with plain batch normalization before renormalization starts"
    )
