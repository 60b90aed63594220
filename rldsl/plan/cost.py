"""A rough estimate of how long a session takes on one core, for plans without earlier sessions to go by.

    seconds = frames * (env + act / num_envs) + updates * (overhead + flops / rate)

The constants are for one core of a current server CPU and are meant to be right within a factor of three.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from rldsl.spec.agent import PPO, ActorCritic, OnPolicy, Sarsa
from rldsl.spec.environment import Environment
from rldsl.spec.experiment import Trial
from rldsl.spec.known import SIZES
from rldsl.spec.net import Conv, Net, Recurrent
from rldsl.spec.off_policy import DQN, OffPolicy

ENV_SECONDS = {"classic": 3e-6, "box2d": 4e-5, "mujoco": 5e-5, "atari": 3e-4, "playground": 1e-3}
HUMANOIDS = ("Humanoid-v5", "HumanoidStandup-v5")
HUMANOID_SECONDS = 2e-4
ACT_SECONDS = 5e-5
UPDATE_SECONDS = 1.5e-4
FLOPS_PER_SECOND = 1e11
CONV_FLOPS = 4e7
"""The network of Mnih et al. (2015) has 9.4M multiplications; convolutions run at half the rate."""
BACKWARD = 3
"""Cost of a forward and a backward pass, in forward passes."""


def core_seconds(trial: Trial) -> float | None:
    """Estimated seconds of one session of a trial on one core; None for agents and environments of users."""
    per_step = _env_seconds(trial.env)
    updates = _updates(trial)
    if per_step is None or updates is None:
        return None
    acting = trial.budget.frames * (per_step + ACT_SECONDS / trial.env.num_envs)
    return acting + updates * (UPDATE_SECONDS + _flops(trial) / FLOPS_PER_SECOND)


def _env_seconds(env: Environment) -> float | None:
    return HUMANOID_SECONDS if env.id in HUMANOIDS else ENV_SECONDS.get(env.kind)


def _updates(trial: Trial) -> float | None:
    """Gradient steps of a session."""
    agent, frames = trial.agent, trial.budget.frames
    if isinstance(agent, OffPolicy):
        return agent.updates(frames)
    if isinstance(agent, OnPolicy | Sarsa):
        epochs, samples = (agent.epochs, agent.minibatch) if isinstance(agent, PPO) else (1, _rollout(trial))
        return frames * epochs / samples
    return 0.0 if agent.kind == "random" else None


def _rollout(trial: Trial) -> int:
    return int(getattr(trial.agent, "rollout", 1)) * trial.env.num_envs


def _flops(trial: Trial) -> float:
    """Floating-point operations of one gradient step."""
    agent = trial.agent
    net = getattr(agent, "net", None)
    if net is None:
        return 0.0
    critic = _forward(getattr(agent, "critic_net", None) or net, trial.env)
    if isinstance(agent, OffPolicy):
        passes = BACKWARD + 1 if isinstance(agent, DQN) else 2 * (BACKWARD + 2)  # two critics and their targets
        policy = 0.0 if isinstance(agent, DQN) else BACKWARD * _forward(net, trial.env)
        return agent.batch * (passes * critic + policy)
    samples = agent.minibatch if isinstance(agent, PPO) else _rollout(trial)
    value = critic if isinstance(agent, ActorCritic) and not agent.shared else 0.0
    return samples * BACKWARD * (_forward(net, trial.env) + value)


def _forward(net: Net, env: Environment) -> float:
    """Operations of a forward pass of one observation: two for each weight."""
    observed, acted = SIZES.get(env.id, (64, 8))
    hidden = tuple(getattr(net, "hidden", ()))
    if isinstance(net, Conv):
        return CONV_FLOPS
    sizes = (observed, *hidden, *((net.size,) if isinstance(net, Recurrent) else ()), acted)
    return float(2 * sum(prod(pair) for pair in pairwise(sizes)))
