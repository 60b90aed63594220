"""Agents: one model an algorithm. A user's own is a subclass of `Agent` with its `kind` and `implementation`."""

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
    """What learns, with every setting that its learning depends on."""

    actions: ClassVar[frozenset[str]] = frozenset({"discrete", "continuous"})
    """The kinds of action space that the algorithm can act in."""
    packs: ClassVar[bool] = True
    """Whether its implementation trains several members at once."""
    remembers: ClassVar[bool] = True
    """Whether its network may be recurrent."""

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        """Sentences about settings that are fine alone and do not fit together."""
        if env.actions is not None and env.actions not in self.actions:
            able = " or ".join(sorted(self.actions))
            yield f"{type(self).__name__} needs {able} actions, and those of {env.label} are {env.actions}"
        if not self.remembers and isinstance(getattr(self, "net", None), Recurrent):
            yield f"{type(self).__name__} learns from single transitions: {type(self).__name__}.net cannot be recurrent"


class Random(Agent, frozen=True):
    """Acts uniformly at random and learns nothing: the baseline of every score, and a test of all but learning."""

    kind: Literal["random"] = "random"
    implementation: ClassVar[str] = "rldsl.agents.random:RandomAgent"


class OnPolicy(Agent, frozen=True):
    """What the on-policy algorithms have in common: a policy on a network, learned from fresh rollouts."""

    gamma: Annotated[Fraction, PerMember] = Field(default=0.99, description="Discount")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=3e-4, description="Learning rate")
    entropy: Annotated[NonNegativeRate, PerMember] = Field(default=0.0, description="Weight of the entropy bonus")
    rollout: Count = Field(default=2048, description="Steps of each environment between two updates")
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(default=0.5, description="Maximum gradient norm")
    normalize_observations: Flag = Field(
        default=False, description="Normalize observations to mean 0, standard deviation 1, clipped to 10"
    )
    normalize_rewards: Flag = Field(
        default=False, description="Divide rewards by the standard deviation of the discounted return"
    )
    net: Net = Field(default=MLP((64, 64)), description="Network of the policy")
    log_std: LogStd | None = Field(
        default=0.0, description="Initial log deviation of continuous actions; none: a head of the network gives it"
    )
    squash: Flag = Field(default=False, description="Continuous actions through tanh")
    optimizer: Optimizer = Field(default=Adam(), description="Optimizer")

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        yield from super().problems(env, budget)
        batch = self.rollout * env.num_envs
        if budget is not None and budget.frames < batch:
            yield f"frames = {budget.frames} is less than one batch of {_batch(self, env)}: nothing would be learned"


class Reinforce(OnPolicy, frozen=True):
    """The policy gradient with returns-to-go: Williams (1992)."""

    kind: Literal["reinforce"] = "reinforce"
    implementation: ClassVar[str] = "rldsl.agents.reinforce:ReinforceAgent"
    remembers: ClassVar[bool] = False

    lr: Annotated[NonNegativeRate, PerMember] = Field(default=2e-3, description="Learning rate")
    rollout: Count = Field(default=512, description="Steps of each environment between two updates")
    normalize_returns: Flag = Field(default=True, description="Returns-to-go of a batch to mean 0, deviation 1")


class ActorCritic(OnPolicy, frozen=True):
    """On-policy algorithms with a learned value."""

    lam: Annotated[Fraction, PerMember] = Field(default=0.95, description="Decay of generalised advantages")
    critic_lr: Annotated[NonNegativeRate | None, PerMember] = Field(
        default=None, description="Learning rate of the critic; none: as `lr`"
    )
    value_coef: Annotated[NonNegative, PerMember] = Field(default=0.5, description="Weight of the value loss")
    value_target_scaling: Flag = Field(default=False, description="Value loss in units of the targets' deviation")
    critic_net: Net | None = Field(default=None, description="Network of the critic; none: as `net`")
    shared: Flag = Field(default=False, description="One trunk for policy and critic")

    def problems(self, env: Environment, budget: Budget | None) -> Iterator[str]:
        yield from super().problems(env, budget)
        name = type(self).__name__
        if self.shared and self.critic_net is not None:
            yield f"{name}.critic_net is of no use with shared=True: the critic is a head on {name}.net"
        if self.shared and self.critic_lr is not None:
            yield f"{name}.critic_lr is of no use with shared=True: policy and critic are one network"


class A2C(ActorCritic, frozen=True):
    """Advantage actor-critic, synchronous: Mnih et al. (2016)."""

    kind: Literal["a2c"] = "a2c"
    implementation: ClassVar[str] = "rldsl.agents.a2c:A2CAgent"

    lr: Annotated[NonNegativeRate, PerMember] = Field(default=7e-4, description="Learning rate")
    entropy: Annotated[NonNegativeRate, PerMember] = Field(default=0.01, description="Weight of the entropy bonus")
    rollout: Count = Field(default=32, description="Steps of each environment between two updates")
    n_step: Count | None = Field(default=None, description="Returns over so many steps instead of lambda-returns")
    normalize_advantages: Flag = Field(default=False, description="Advantages of a batch to mean 0, deviation 1")
    optimizer: Optimizer = Field(default=RMSprop(), description="Optimizer")


class SIL(Spec, frozen=True):
    """Self-imitation: learns again from the past that turned out better than thought: Oh et al. (2018)."""

    updates: Count = Field(default=10, description="Gradient steps after each rollout")
    batch: Count = Field(default=512, description="Transitions of one of them")
    buffer: Count = Field(default=100_000, description="Transitions kept")
    policy_coef: NonNegative = Field(default=1.0, description="Weight of the policy loss")
    value_coef: NonNegative = Field(default=0.01, description="Weight of the value loss")
    alpha: Fraction = Field(default=0.6, description="How much the advantage decides what is sampled")
    beta: Fraction = Field(default=0.1, description="Importance-sampling exponent")


class PPO(ActorCritic, frozen=True):
    """Proximal policy optimisation: Schulman et al. (2017)."""

    kind: Literal["ppo"] = "ppo"
    implementation: ClassVar[str] = "rldsl.agents.ppo:PPOAgent"

    clip: Annotated[NonNegativeRate, PerMember] = Field(
        default=0.2, description="Bound on the change of an action's probability ratio"
    )
    minibatch: Count = Field(default=64, description="Transitions of one gradient step")
    epochs: Count = Field(default=10, description="Passes over each rollout")
    normalize_advantages: Flag = Field(default=True, description="Advantages of a minibatch to mean 0, deviation 1")
    recompute_advantages: Flag = Field(default=False, description="Advantages anew before each epoch")
    value_clip: Flag = Field(default=False, description="Clip the change of the value as that of the policy")
    target_kl: Positive | None = Field(default=None, description="End the epochs when the policy moved further")
    sil: SIL | None = Field(default=None, description="Self-imitation after each rollout")

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
    """On-policy learning of action values: Rummery and Niranjan (1994)."""

    kind: Literal["sarsa"] = "sarsa"
    implementation: ClassVar[str] = "rldsl.agents.sarsa:SarsaAgent"
    actions: ClassVar[frozenset[str]] = frozenset({"discrete"})
    remembers: ClassVar[bool] = False

    gamma: Annotated[Fraction, PerMember] = Field(default=0.99, description="Discount")
    lr: Annotated[NonNegativeRate, PerMember] = Field(default=1e-3, description="Learning rate")
    explore: Literal["epsilon", "boltzmann"] = Field(default="epsilon", description="How actions are drawn from values")
    epsilon: Annotated[FractionRate, PerMember] = Field(
        default=Linear(1.0, 0.05), description="Chance of a random action, where exploring by epsilon"
    )
    temperature: Annotated[PositiveRate, PerMember] = Field(
        default=Linear(1.0, 0.1), description="Of the softmax over values, where exploring by boltzmann"
    )
    rollout: Count = Field(default=32, description="Steps of each environment between two updates")
    max_grad_norm: Annotated[Positive | None, PerMember] = Field(default=0.5, description="Maximum gradient norm")
    normalize_observations: Flag = Field(
        default=False, description="Normalize observations to mean 0, standard deviation 1, clipped to 10"
    )
    net: Net = Field(default=MLP((64, 64)), description="Network of the values")
    optimizer: Optimizer = Field(default=Adam(), description="Optimizer")


def _batch(agent: OnPolicy, env: Environment) -> str:
    return f"rollout * num_envs = {agent.rollout} * {env.num_envs} = {agent.rollout * env.num_envs}"


def divisors(number: int) -> Iterator[int]:
    """All divisors of a positive number, in no order."""
    for small in range(1, int(number**0.5) + 1):
        if number % small == 0:
            yield small
            yield number // small
