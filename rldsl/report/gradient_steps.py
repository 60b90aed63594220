"""How many gradient steps a session has taken, from its settings."""

from __future__ import annotations

import numpy as np

from rldsl.report.panel import Floats
from rldsl.spec.agent import A2C, PPO, Reinforce, Sarsa
from rldsl.spec.experiment import Trial
from rldsl.spec.off_policy import OffPolicy


def gradient_steps(trial: Trial, frames: Floats) -> Floats | None:
    """The gradient steps after each of these numbers of frames.

    None where they do not follow from the settings: agents of users, PPO whose epochs may end early, and
    self-imitation, which begins when its buffer has enough episodes.
    """
    agent = trial.agent
    if isinstance(agent, OffPolicy):
        return np.maximum(0.0, np.floor((frames - agent.learning_starts) * agent.updates_per_frame))
    if isinstance(agent, PPO) and (agent.target_kl is not None or agent.sil is not None):
        return None
    if type(agent) not in (PPO, A2C, Reinforce, Sarsa):
        return np.zeros_like(frames) if agent.kind == "random" else None
    assert isinstance(agent, PPO | A2C | Reinforce | Sarsa)
    batch = agent.rollout * trial.env.num_envs
    steps = agent.epochs * (batch // agent.minibatch) if isinstance(agent, PPO) else 1
    return np.floor(frames / batch) * steps
