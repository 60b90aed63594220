"""The gradient steps that follow from the settings are those that the optimizer has counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rldsl import A2C, Adam, Agent, Environment
from rldsl.agents.update import STEP
from rldsl.report.gradient_steps import gradient_steps
from tests.train.packs import CARTPOLE, CASES, NET, PPO_SMALL, session, train


@pytest.mark.parametrize("name", ["reinforce", "sarsa_epsilon", "a2c", "ppo_recurrent", "dqn", "sac"])
def test_they_equal_the_count_of_the_optimizer(tmp_path: Path, name: str) -> None:
    agent, env = CASES[name]
    one = session(agent.with_(optimizer=Adam()), env, frames=300)  # RMSprop, the default of A2C, does not count
    pack = train(tmp_path, one)
    (counted,) = pack.agent.update.state[STEP].flatten().tolist()  # type: ignore[attr-defined]
    steps = gradient_steps(one.trial, np.array([0.0, 300.0]))
    assert steps is not None and steps.tolist() == [0, counted] and counted > 3


def test_ppo_takes_epochs_times_minibatches() -> None:
    trial = session(PPO_SMALL, CARTPOLE).trial  # rollouts of 32 x 2 frames, 2 epochs of 4 minibatches
    steps = gradient_steps(trial, np.array([63.0, 64.0, 640.0]))
    assert steps is not None and steps.tolist() == [0, 8, 80]


class Mine(A2C, frozen=True):
    """An agent of a user, who may do anything."""

    kind: str = "mine-for-gradient-steps"


@pytest.mark.parametrize(("agent", "env"), [CASES["ppo"], CASES["ppo_sil"], (Mine(net=NET), CARTPOLE)])
def test_they_are_unknown_where_the_settings_do_not_say(agent: Agent, env: Environment) -> None:
    assert gradient_steps(session(agent, env).trial, np.array([1e4])) is None
