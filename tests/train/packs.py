"""Small sessions of every algorithm, and packs of them that train in this process, in a directory of the test."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rldsl import (
    A2C,
    DQN,
    MLP,
    PPO,
    SAC,
    SIL,
    Agent,
    Classic,
    CrossQ,
    Environment,
    Linear,
    Prioritized,
    Random,
    Recurrent,
    Reinforce,
    Sarsa,
)
from rldsl.spec.base import PerMember
from rldsl.spec.budget import Budget, Evaluation
from rldsl.spec.experiment import Trial
from rldsl.spec.session import Session
from rldsl.store.provenance import Provenance, collect
from rldsl.train.pack import Pack, open_directories
from tests.agents.tiny import Secret
from tests.project import rows

CARTPOLE = Classic("CartPole-v1", num_envs=2)
PENDULUM = Classic("Pendulum-v1", num_envs=2)
NET = MLP((16,))
RECURRENT = Recurrent((8,), size=8)

PPO_SMALL = PPO(rollout=32, minibatch=16, epochs=2, net=NET)
NORMALIZED = PPO_SMALL.with_(normalize_observations=True, normalize_rewards=True, value_target_scaling=True)

REPLAY: dict[str, Any] = {"learning_starts": 128, "updates_per_frame": 0.25, "batch": 16, "buffer": 256, "net": NET}
"""A buffer that is soon full."""

CASES: dict[str, tuple[Agent, Environment]] = {
    "reinforce": (Reinforce(rollout=32, net=NET, normalize_observations=True), CARTPOLE),
    "sarsa_epsilon": (Sarsa(rollout=16, net=NET), CARTPOLE),
    "sarsa_boltzmann": (Sarsa(rollout=16, net=NET, explore="boltzmann", normalize_observations=True), CARTPOLE),
    "a2c": (A2C(rollout=16, net=NET, normalize_observations=True, critic_lr=1e-3), CARTPOLE),
    "a2c_n_step": (A2C(rollout=16, net=NET, normalize_observations=True, n_step=5, log_std=None), PENDULUM),
    "a2c_recurrent": (A2C(rollout=8, net=RECURRENT), CARTPOLE),
    "ppo": (PPO_SMALL.with_(target_kl=0.003, epochs=4, recompute_advantages=True, value_clip=True), CARTPOLE),
    "ppo_pendulum": (NORMALIZED, PENDULUM),
    "ppo_recurrent": (PPO_SMALL.with_(rollout=8, net=RECURRENT.with_(cell="lstm"), squash=True), PENDULUM),
    "ppo_asymmetric": (NORMALIZED, Secret(num_envs=2)),
    "ppo_sil": (PPO_SMALL.with_(sil=SIL(batch=64, buffer=256, updates=3)), CARTPOLE),
    "dqn": (DQN(**REPLAY, n_step=3, include_newest=True, target_every=7), CARTPOLE),
    "dqn_prioritized": (
        DQN(
            **REPLAY, prioritized=Prioritized(), double=True, dueling=True, explore="boltzmann", tau=0.1, target_every=1
        ),
        CARTPOLE,
    ),
    "sac": (SAC(**REPLAY, critic_lr=1e-3), PENDULUM),
    "sac_discrete": (SAC(**REPLAY, critic_reduction="mean", policy_delay=2, critic_entropy=False), CARTPOLE),
    "crossq": (CrossQ(**REPLAY, critic_net=MLP((24,)), renorm_after=20), PENDULUM),
    "crossq_discrete": (CrossQ(**REPLAY, critic_net=None, policy_delay=2, renorm_after=20), CARTPOLE),
    "random": (Random(), CARTPOLE),
}

APART: dict[str, tuple[Any, Any, Any]] = {
    "gamma": (0.9, 0.99, 0.95),
    "lr": (1e-3, Linear(5e-3), 3e-3),
    "critic_lr": (2e-3, 1e-3, Linear(4e-3)),
    "entropy": (0.0, 0.01, 0.05),
    "lam": (0.8, 0.95, 1.0),
    "log_std": (0.0, -0.5, -1.0),
    "clip": (0.1, 0.2, Linear(0.3, 0.1)),
    "value_coef": (0.5, 1.0, 0.25),
    "max_grad_norm": (0.3, 0.5, 5.0),
    "epsilon": (0.1, Linear(1.0, 0.05), 0.3),
    "temperature": (1.0, Linear(1.0, 0.1), 0.5),
    "tau": (0.01, 0.1, 1.0),
    "alpha": (None, None, None),
    "init_alpha": (0.1, 1.0, 0.5),
    "target_entropy": (-2.0, None, 0.3),
    "entropy_ratio": (0.5, 0.9, 0.2),
}
"""Three values of each field in which members may differ."""


def three_apart(agent: Agent) -> list[Agent]:
    """The agent three times, different wherever members of a pack may be."""
    fields = type(agent).model_fields
    names = [name for name, field in fields.items() if PerMember in field.metadata and getattr(agent, name) is not None]
    return [agent.with_(**{name: APART[name][member] for name in names}) for member in range(3)]


def session(
    agent: Agent, env: Environment = CARTPOLE, seed: int = 0, evaluation: Evaluation | None = None, **budget: int
) -> Session:
    """A session of 512 frames, unless the budget says otherwise."""
    trial = Trial(
        agent=agent, env=env, budget=Budget(**{"frames": 512, "log_every": 64} | budget), evaluation=evaluation
    )
    return Session(experiment="test", trial=trial, seed=seed)


def train(
    runs: Path,
    *sessions: Session,
    stop: Callable[[Pack], str | None] = lambda pack: None,
    until: int | None = None,
) -> Pack:
    """Trains a pack to its end, to the frame `until`, or until `stop`, called between two iterations, says why not."""
    pack = Pack(sessions, open_directories(runs, sessions), _origin())
    pack.run(lambda: stop(pack), until)
    return pack


@cache
def _origin() -> Provenance:
    return collect(["test"], Path.cwd())


def curve(directory: Path) -> dict[str, np.ndarray]:
    """The columns of metrics.csv that do not tell of the clock, NaN where a cell is empty."""
    points = rows(directory)
    return {
        name: np.array([float(point[name] or "nan") for point in points])
        for name in points[0]
        if name not in ("seconds", "fps")
    }
