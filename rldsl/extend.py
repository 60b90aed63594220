"""Everything needed to write an agent, network, schedule, environment or launcher. See docs/extending.md.

Specs come from `rldsl` (`Agent`, `Net`, `Schedule`, `Environment`, `Launcher`); this module has the base classes and
helpers of their implementations. Names are imported when they are first used, so that a file that only declares specs
loads neither torch nor gymnasium.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rldsl.spec.environment import Environment
from rldsl.spec.implementation import implementation

if TYPE_CHECKING:
    from rldsl.agents.action_space import ActionSpace as ActionSpace
    from rldsl.agents.base import AgentContext as AgentContext
    from rldsl.agents.base import Learner as Learner
    from rldsl.agents.base import Policy as Policy
    from rldsl.agents.base import World as World
    from rldsl.agents.coefficients import Coefficients as Coefficients
    from rldsl.agents.gradient_learner import GradientLearner as GradientLearner
    from rldsl.agents.normalization import Normalization as Normalization
    from rldsl.agents.off_policy import OffPolicyAgent as OffPolicyAgent
    from rldsl.agents.on_policy import OnPolicyAgent as OnPolicyAgent
    from rldsl.agents.update import Batch as Batch
    from rldsl.agents.update import Update as Update
    from rldsl.envs.contract import ALL_ROWS as ALL_ROWS
    from rldsl.envs.contract import Continuous as Continuous
    from rldsl.envs.contract import Discrete as Discrete
    from rldsl.envs.contract import EnvError as EnvError
    from rldsl.envs.contract import Spaces as Spaces
    from rldsl.envs.contract import Step as Step
    from rldsl.envs.contract import VectorEnv as VectorEnv
    from rldsl.launch.backend import Backend as Backend
    from rldsl.launch.backend import Check as Check
    from rldsl.launch.backend import QueueState as QueueState
    from rldsl.launch.backend import QueueUnavailable as QueueUnavailable
    from rldsl.launch.backend import Refused as Refused
    from rldsl.launch.job_records import JobRecord as JobRecord
    from rldsl.launch.jobs import Job as Job
    from rldsl.launch.jobs import Resources as Resources
    from rldsl.launch.local_backend import LocalBackend as LocalBackend
    from rldsl.maths.distributions import boltzmann_probabilities as boltzmann_probabilities
    from rldsl.maths.distributions import categorical_entropy as categorical_entropy
    from rldsl.maths.distributions import categorical_log_prob as categorical_log_prob
    from rldsl.maths.distributions import epsilon_greedy_probabilities as epsilon_greedy_probabilities
    from rldsl.maths.distributions import gaussian_entropy as gaussian_entropy
    from rldsl.maths.distributions import gaussian_log_prob as gaussian_log_prob
    from rldsl.maths.distributions import squashed_gaussian_log_prob as squashed_gaussian_log_prob
    from rldsl.maths.distributions import squashed_gaussian_sample as squashed_gaussian_sample
    from rldsl.maths.losses import approximate_kl as approximate_kl
    from rldsl.maths.losses import clip_fraction as clip_fraction
    from rldsl.maths.losses import clipped_value_loss as clipped_value_loss
    from rldsl.maths.losses import entropy_bonus as entropy_bonus
    from rldsl.maths.losses import explained_variance as explained_variance
    from rldsl.maths.losses import huber as huber
    from rldsl.maths.losses import normalize_per_member as normalize_per_member
    from rldsl.maths.losses import ppo_clip_loss as ppo_clip_loss
    from rldsl.maths.losses import reinforce_loss as reinforce_loss
    from rldsl.maths.losses import self_imitation_policy_loss as self_imitation_policy_loss
    from rldsl.maths.losses import self_imitation_value_loss as self_imitation_value_loss
    from rldsl.maths.losses import value_loss as value_loss
    from rldsl.maths.members import member_mean as member_mean
    from rldsl.maths.off_policy_losses import combine_critics as combine_critics
    from rldsl.maths.off_policy_losses import critics_loss as critics_loss
    from rldsl.maths.off_policy_losses import expected_soft_actor_loss as expected_soft_actor_loss
    from rldsl.maths.off_policy_losses import huber_td_loss as huber_td_loss
    from rldsl.maths.off_policy_losses import soft_actor_loss as soft_actor_loss
    from rldsl.maths.off_policy_losses import temperature_loss as temperature_loss
    from rldsl.maths.returns import discounted_returns as discounted_returns
    from rldsl.maths.returns import double_q_target as double_q_target
    from rldsl.maths.returns import expected_soft_value as expected_soft_value
    from rldsl.maths.returns import generalized_advantages as generalized_advantages
    from rldsl.maths.returns import n_step_returns as n_step_returns
    from rldsl.maths.returns import q_learning_target as q_learning_target
    from rldsl.maths.returns import td_target as td_target
    from rldsl.maths.schedules import value_at as value_at
    from rldsl.maths.streams import restore_stream as restore_stream
    from rldsl.maths.streams import stream as stream
    from rldsl.maths.streams import stream_state as stream_state
    from rldsl.maths.target_networks import soft_update as soft_update
    from rldsl.memory.episode_buffer import EpisodeBuffer as EpisodeBuffer
    from rldsl.memory.replay import ReplayBuffer as ReplayBuffer
    from rldsl.memory.replay_size import ReplayShape as ReplayShape
    from rldsl.memory.rollout import RolloutBuffer as RolloutBuffer
    from rldsl.nets.acting import Actor as Actor
    from rldsl.nets.acting import NumpyPolicy as NumpyPolicy
    from rldsl.nets.acting import make_actor as make_actor
    from rldsl.nets.actor_critic import ActorCritic as ActorCritic
    from rldsl.nets.critic import Critic as Critic
    from rldsl.nets.critic import Twins as Twins
    from rldsl.nets.heads import Gaussian as Gaussian
    from rldsl.nets.heads import Head as Head
    from rldsl.nets.init import Arrays as Arrays
    from rldsl.nets.layout import Layout as Layout
    from rldsl.nets.layout import Params as Params
    from rldsl.nets.layout import scope as scope
    from rldsl.nets.linear import init_linear as init_linear
    from rldsl.nets.linear import linear as linear
    from rldsl.nets.linear import linear_shapes as linear_shapes
    from rldsl.nets.network import Network as Network
    from rldsl.nets.q_network import QNetwork as QNetwork
    from rldsl.nets.sampling import greedy as greedy
    from rldsl.nets.sampling import sample as sample
    from rldsl.nets.trunk import FeedForward as FeedForward
    from rldsl.nets.trunk import Trunk as Trunk
    from rldsl.nets.trunk import as_float as as_float
    from rldsl.nets.trunk import build_trunk as build_trunk
    from rldsl.play.rendering import make_rendered_env as make_rendered_env
    from rldsl.play.video import VideoRecorder as VideoRecorder
    from rldsl.spec.agent import OnPolicy as OnPolicy
    from rldsl.spec.base import Below1 as Below1
    from rldsl.spec.base import Count as Count
    from rldsl.spec.base import Flag as Flag
    from rldsl.spec.base import Fraction as Fraction
    from rldsl.spec.base import Kind as Kind
    from rldsl.spec.base import Natural as Natural
    from rldsl.spec.base import NoHash as NoHash
    from rldsl.spec.base import NonNegative as NonNegative
    from rldsl.spec.base import PerMember as PerMember
    from rldsl.spec.base import Positive as Positive
    from rldsl.spec.base import Real as Real
    from rldsl.spec.base import Sizes as Sizes
    from rldsl.spec.base import Spec as Spec
    from rldsl.spec.base import Whole as Whole
    from rldsl.spec.budget import Budget as Budget
    from rldsl.spec.compute import Compute as Compute
    from rldsl.spec.off_policy import OffPolicy as OffPolicy
    from rldsl.spec.schedule import FractionRate as FractionRate
    from rldsl.spec.schedule import NonNegativeRate as NonNegativeRate
    from rldsl.spec.schedule import PositiveRate as PositiveRate
    from rldsl.store.append_only_ring import AppendOnlyRing as AppendOnlyRing
    from rldsl.train.hooks import LogPoint as LogPoint
    from rldsl.train.hooks import SessionEnd as SessionEnd

_HOMES = {
    "rldsl.agents.coefficients": ("Coefficients",),
    "rldsl.agents.base": (
        "AgentContext",
        "Learner",
        "Policy",
        "World",
    ),
    "rldsl.agents.gradient_learner": ("GradientLearner",),
    "rldsl.agents.normalization": ("Normalization",),
    "rldsl.agents.off_policy": ("OffPolicyAgent",),
    "rldsl.agents.on_policy": ("OnPolicyAgent",),
    "rldsl.agents.action_space": ("ActionSpace",),
    "rldsl.agents.update": (
        "Batch",
        "Update",
    ),
    "rldsl.envs.contract": (
        "ALL_ROWS",
        "Continuous",
        "Discrete",
        "EnvError",
        "Spaces",
        "Step",
        "VectorEnv",
    ),
    "rldsl.launch.local_backend": ("LocalBackend",),
    "rldsl.launch.backend": (
        "Backend",
        "Check",
        "QueueUnavailable",
        "QueueState",
        "Refused",
    ),
    "rldsl.launch.jobs": (
        "Job",
        "Resources",
    ),
    "rldsl.launch.job_records": ("JobRecord",),
    "rldsl.memory.replay_size": ("ReplayShape",),
    "rldsl.maths.schedules": ("value_at",),
    "rldsl.maths.streams": (
        "restore_stream",
        "stream",
        "stream_state",
    ),
    "rldsl.memory.episode_buffer": ("EpisodeBuffer",),
    "rldsl.memory.replay": ("ReplayBuffer",),
    "rldsl.memory.rollout": ("RolloutBuffer",),
    "rldsl.nets.acting": (
        "Actor",
        "NumpyPolicy",
        "make_actor",
    ),
    "rldsl.nets.actor_critic": ("ActorCritic",),
    "rldsl.nets.init": ("Arrays",),
    "rldsl.nets.layout": (
        "Layout",
        "Params",
        "scope",
    ),
    "rldsl.nets.linear": (
        "init_linear",
        "linear",
        "linear_shapes",
    ),
    "rldsl.nets.network": ("Network",),
    "rldsl.nets.q_network": ("QNetwork",),
    "rldsl.nets.sampling": (
        "greedy",
        "sample",
    ),
    "rldsl.nets.trunk": (
        "FeedForward",
        "Trunk",
        "as_float",
        "build_trunk",
    ),
    "rldsl.play.rendering": ("make_rendered_env",),
    "rldsl.play.video": ("VideoRecorder",),
    "rldsl.spec.agent": ("OnPolicy",),
    "rldsl.spec.base": (
        "Below1",
        "Count",
        "Flag",
        "Fraction",
        "Kind",
        "Natural",
        "NoHash",
        "NonNegative",
        "PerMember",
        "Positive",
        "Real",
        "Sizes",
        "Spec",
        "Whole",
    ),
    "rldsl.spec.budget": ("Budget",),
    "rldsl.spec.compute": ("Compute",),
    "rldsl.spec.off_policy": ("OffPolicy",),
    "rldsl.spec.schedule": (
        "FractionRate",
        "NonNegativeRate",
        "PositiveRate",
    ),
    "rldsl.store.append_only_ring": ("AppendOnlyRing",),
    "rldsl.train.hooks": ("LogPoint", "SessionEnd"),
    "rldsl.nets.heads": (
        "Gaussian",
        "Head",
    ),
    "rldsl.nets.critic": (
        "Critic",
        "Twins",
    ),
    "rldsl.maths.members": ("member_mean",),
    "rldsl.maths.target_networks": ("soft_update",),
    "rldsl.maths.losses": (
        "reinforce_loss",
        "ppo_clip_loss",
        "approximate_kl",
        "clip_fraction",
        "value_loss",
        "clipped_value_loss",
        "huber",
        "self_imitation_policy_loss",
        "self_imitation_value_loss",
        "entropy_bonus",
        "normalize_per_member",
        "explained_variance",
    ),
    "rldsl.maths.off_policy_losses": (
        "huber_td_loss",
        "critics_loss",
        "combine_critics",
        "soft_actor_loss",
        "expected_soft_actor_loss",
        "temperature_loss",
    ),
    "rldsl.maths.returns": (
        "discounted_returns",
        "generalized_advantages",
        "n_step_returns",
        "td_target",
        "q_learning_target",
        "double_q_target",
        "expected_soft_value",
    ),
    "rldsl.maths.distributions": (
        "categorical_log_prob",
        "categorical_entropy",
        "gaussian_log_prob",
        "gaussian_entropy",
        "squashed_gaussian_sample",
        "squashed_gaussian_log_prob",
        "epsilon_greedy_probabilities",
        "boltzmann_probabilities",
    ),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted([*_MODULES, "make_vector_env"])


def make_vector_env(env: Environment, rows: int = 1, threads: int = 1) -> VectorEnv:
    """The vector environment that a spec describes: independent rows, stepped by up to `threads` threads."""
    made: VectorEnv = implementation(env)(env, rows, threads)
    return made


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
