"""Settings of the on-policy agents, one model per algorithm.

A user's own agent is a subclass of `Agent` with its `kind` and `implementation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Le
from pydantic import Field

from rldsl.spec.base import Count, Flag, Fraction, Kind, NonNegative, PerMember, Positive, Real, Spec
from rldsl.spec.net import MLP, Net, Recurrent
from rldsl.spec.optimizer import Adam, Optimizer, RMSprop
from rldsl.spec.schedule import FractionRate, Linear, NonNegativeRate, PositiveRate

if TYPE_CHECKING:
    from rldsl.spec.budget import Budget
    from rldsl.spec.environment import Environment


LogStd: TypeAlias = Annotated[Real, Ge(-5), Le(2)]


class Agent(Kind, frozen=True):
    """An algorithm with all of its hyperparameters."""

    actions: ClassVar[frozenset[str]] = frozenset({"discrete", "continuous"})
    """The kinds of action space that the algorithm supports."""
    packs: ClassVar[bool] = True
    """Whether the implementation can train several members in one process."""
    extends: ClassVar[bool] = True
    """Whether a session may continue one with fewer frames. False if the algorithm depends on the whole budget in
    another way than through schedules."""
    supports_recurrent: ClassVar[bool] = True
    """Whether the network may be recurrent."""

    @property
    def unused(self) -> frozenset[str]:
        """Fields that have no effect with the values of the others."""
        return frozenset()

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        """One sentence for each combination of settings that is invalid although every field is valid by itself."""
        if env.actions is not None and env.actions not in self.actions:
            able = " or ".join(sorted(self.actions))
            yield f"{type(self).__name__} needs {able} actions, and those of {env.label} are {env.actions}"
        if not self.supports_recurrent and isinstance(getattr(self, "net", None), Recurrent):
            yield f"{type(self).__name__} learns from single transitions: {type(self).__name__}.net cannot be recurrent"


class Random(Agent, frozen=True):
    """Uniformly random actions, no learning: the baseline for scores."""

    kind: Literal["random"] = "random"
    implementation: ClassVar[str] = "rldsl.agents.random:RandomAgent"


class OnPolicy(Agent, frozen=True):
    """Settings shared by the on-policy algorithms."""

    gamma: Annotated[Fraction, PerMember] = Field(default=0.99, description="Discount factor")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=3e-4, description="Learning rate")
    entropy: Annotated[NonNegativeRate, PerMember] = Field(default=0.0, description="Entropy coefficient")
    rollout: Count = Field(default=2048, description="Number of steps per environment and rollout")
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(
        default=0.5, description="Maximum gradient norm; None: no clipping"
    )
    normalize_observations: Flag = Field(
        default=False, description="Normalize observations by their running mean and standard deviation, clipped to ±10"
    )
    normalize_rewards: Flag = Field(
        default=False, description="Divide rewards by the running standard deviation of the discounted return"
    )
    net: Net = Field(default=MLP((64, 64)), description="Policy network")
    log_std: Annotated[LogStd | None, PerMember] = Field(
        default=0.0,
        description="Initial log standard deviation of continuous actions, independent of the state; "
        "None: predicted by the network",
    )
    squash: Flag = Field(default=False, description="Squash continuous actions with tanh")
    optimizer: Optimizer = Field(default=Adam(), description="Optimizer")

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        yield from super().problems(env, budget)
        batch = self.rollout * env.num_envs
        if budget is not None and budget.frames < batch:
            yield f"frames = {budget.frames} is less than one batch of {_batch(self, env)}: nothing would be learned"


class Reinforce(OnPolicy, frozen=True):
    """REINFORCE, the policy gradient with returns-to-go: Williams (1992)."""

    kind: Literal["reinforce"] = "reinforce"
    implementation: ClassVar[str] = "rldsl.agents.reinforce:ReinforceAgent"
    supports_recurrent: ClassVar[bool] = False

    lr: Annotated[NonNegativeRate, PerMember] = Field(default=2e-3, description="Learning rate")
    rollout: Count = Field(default=512, description="Number of steps per environment and rollout")
    normalize_returns: Flag = Field(
        default=True, description="Normalize the returns of each batch to mean 0 and standard deviation 1"
    )


class ActorCritic(OnPolicy, frozen=True):
    """Settings shared by the on-policy algorithms with a value function."""

    lam: Annotated[Fraction, PerMember] = Field(default=0.95, description="GAE lambda")
    critic_lr: Annotated[NonNegativeRate | None, PerMember] = Field(
        default=None, description="Learning rate of the critic; None: same as `lr`"
    )
    value_coef: Annotated[NonNegative, PerMember] = Field(default=0.5, description="Coefficient of the value loss")
    value_target_scaling: Flag = Field(
        default=False, description="Divide value errors by the running standard deviation of the value targets"
    )
    critic_net: Net | None = Field(default=None, description="Value network; None: same architecture as `net`")
    shared: Flag = Field(default=False, description="Policy and value function share one network with two heads")

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        yield from super().problems(env, budget)
        name = type(self).__name__
        if self.shared and self.critic_net is not None:
            yield f"{name}.critic_net has no effect with shared=True: the critic is a head on {name}.net"
        if self.shared and self.critic_lr is not None:
            yield f"{name}.critic_lr has no effect with shared=True: policy and critic are one network"


class A2C(ActorCritic, frozen=True):
    """Advantage actor-critic, synchronous: Mnih et al. (2016)."""

    kind: Literal["a2c"] = "a2c"
    implementation: ClassVar[str] = "rldsl.agents.a2c:A2CAgent"

    lr: Annotated[NonNegativeRate, PerMember] = Field(default=7e-4, description="Learning rate")
    entropy: Annotated[NonNegativeRate, PerMember] = Field(default=0.01, description="Entropy coefficient")
    rollout: Count = Field(default=32, description="Number of steps per environment and rollout")
    n_step: Count | None = Field(default=None, description="Use n-step returns with this n instead of GAE")
    normalize_advantages: Flag = Field(
        default=False, description="Normalize the advantages of each batch to mean 0 and standard deviation 1"
    )
    optimizer: Optimizer = Field(default=RMSprop(), description="Optimizer")


class SIL(Spec, frozen=True):
    """Self-imitation learning from past transitions whose return exceeded the value estimate: Oh et al. (2018)."""

    updates: Count = Field(default=10, description="Gradient steps after each rollout")
    batch: Count = Field(default=512, description="Batch size of each gradient step")
    buffer: Count = Field(default=100_000, description="Size of the replay buffer")
    policy_coef: NonNegative = Field(default=1.0, description="Coefficient of the policy loss")
    value_coef: NonNegative = Field(default=0.01, description="Coefficient of the value loss")
    alpha: Fraction = Field(default=0.6, description="Prioritization exponent")
    beta: Fraction = Field(default=0.1, description="Importance-sampling exponent")


class PPO(ActorCritic, frozen=True):
    """Proximal policy optimization: Schulman et al. (2017)."""

    kind: Literal["ppo"] = "ppo"
    implementation: ClassVar[str] = "rldsl.agents.ppo:PPOAgent"

    clip: Annotated[NonNegativeRate, PerMember] = Field(
        default=0.2, description="Clipping range of the probability ratio"
    )
    minibatch: Count = Field(default=64, description="Minibatch size")
    epochs: Count = Field(default=10, description="Number of epochs over each rollout")
    normalize_advantages: Flag = Field(
        default=True, description="Normalize the advantages of each minibatch to mean 0 and standard deviation 1"
    )
    recompute_advantages: Flag = Field(default=False, description="Recompute the advantages before each epoch")
    value_clip: Flag = Field(default=False, description="Clip the change of the value function with the same range")
    target_kl: Positive | None = Field(
        default=None, description="Stop the epochs early when the approximate KL divergence exceeds this; None: never"
    )
    sil: SIL | None = Field(default=None, description="Self-imitation learning after each rollout; None: off")

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        yield from super().problems(env, budget)
        if self.sil is not None and isinstance(self.net, Recurrent):
            yield "PPO.sil learns from single transitions: PPO.net cannot be recurrent with it"
        batch = self.rollout * env.num_envs
        if self.minibatch > batch:
            yield f"PPO.minibatch = {self.minibatch} is more than the batch of {_batch(self, env)}"
        elif batch % self.minibatch:
            near = sorted(divisors(batch), key=lambda size: abs(size - self.minibatch))[:2]
            choices = " or ".join(str(size) for size in sorted(near))
            yield f"PPO.minibatch = {self.minibatch} does not divide the batch of {_batch(self, env)}; {choices} would"


class Sarsa(Agent, frozen=True):
    """SARSA, on-policy learning of action values: Rummery and Niranjan (1994)."""

    kind: Literal["sarsa"] = "sarsa"
    implementation: ClassVar[str] = "rldsl.agents.sarsa:SarsaAgent"
    actions: ClassVar[frozenset[str]] = frozenset({"discrete"})
    supports_recurrent: ClassVar[bool] = False

    gamma: Annotated[Fraction, PerMember] = Field(default=0.99, description="Discount factor")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=1e-3, description="Learning rate")
    explore: Literal["epsilon", "boltzmann"] = Field(
        default="epsilon", description="Exploration: epsilon-greedy or softmax"
    )
    epsilon: Annotated[FractionRate, PerMember] = Field(
        default=Linear(1.0, 0.05), description="Probability of a random action with epsilon-greedy exploration"
    )
    temperature: Annotated[PositiveRate, PerMember] = Field(
        default=Linear(1.0, 0.1), description="Softmax temperature with Boltzmann exploration"
    )
    rollout: Count = Field(default=32, description="Number of steps per environment and rollout")
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(
        default=0.5, description="Maximum gradient norm; None: no clipping"
    )
    normalize_observations: Flag = Field(
        default=False, description="Normalize observations by their running mean and standard deviation, clipped to ±10"
    )
    net: Net = Field(default=MLP((64, 64)), description="Q-network")
    optimizer: Optimizer = Field(default=Adam(), description="Optimizer")

    @property
    def unused(self) -> frozenset[str]:
        return frozenset({"temperature" if self.explore == "epsilon" else "epsilon"})


def _batch(agent: OnPolicy, env: Environment) -> str:
    return f"rollout * num_envs = {agent.rollout} * {env.num_envs} = {agent.rollout * env.num_envs}"


def divisors(number: int) -> Iterator[int]:
    """All divisors of a positive number, unordered."""
    for small in range(1, int(number**0.5) + 1):
        if number % small == 0:
            yield small
            yield number // small
