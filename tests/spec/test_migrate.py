"""Records of schema 1 are still read; their fields carry today's names."""

from __future__ import annotations

from typing import Any

import pytest

from rldsl import DQN, PPO, SAC, Agent, Classic
from rldsl.spec.budget import Budget
from rldsl.spec.experiment import Trial
from rldsl.spec.migrate import migrate_trial
from rldsl.spec.session import Session, recorded_id

OLD_NAMES = {
    "max_grad_norm": "grad_clip",
    "learning_starts": "start",
    "include_newest": "newest",
    "critic_reduction": "twins",
    "init_alpha": "first_alpha",
}
CARTPOLE, FRAMES = Classic("CartPole-v1"), Budget(1e5)
AGENTS = [
    PPO(max_grad_norm=0.7),
    DQN(learning_starts=32, include_newest=True),
    SAC(critic_reduction="mean", init_alpha=0.3, learning_starts=64),
]


def as_schema_1(session: Session) -> dict[str, Any]:
    """The `session.json` that schema 1 would have written."""
    record = session.record()
    agent = {OLD_NAMES.get(name, name): value for name, value in record["trial"]["agent"].items()}
    trial = {**record["trial"], "agent": agent}
    old = {**record, "schema": 1, "trial": trial}
    return {**old, "trial_id": recorded_id(old), "id": f"{recorded_id(old)}-s{session.seed}"}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.kind)
def test_a_record_of_schema_1_is_read_as_the_same_session(agent: Agent) -> None:
    session = Session(experiment="x", trial=Trial(agent=agent, env=CARTPOLE, budget=FRAMES), seed=3)
    old = as_schema_1(session)
    assert old["trial"] != session.record()["trial"]
    assert Session.from_record(old) == session


def test_the_halved_value_loss_of_schema_1_is_in_the_coefficient() -> None:
    clipped = {"agent": {"kind": "ppo", "value_clip": True, "value_coef": 0.5}}
    assert migrate_trial(clipped, 1)["agent"]["value_coef"] == 0.25
    assert migrate_trial(clipped, 2)["agent"]["value_coef"] == 0.5
    assert migrate_trial({"agent": {**clipped["agent"], "value_clip": False}}, 1)["agent"]["value_coef"] == 0.5


def test_fields_of_other_agents_and_of_this_schema_keep_their_names() -> None:
    mine = {"agent": {"kind": "hill_climbing", "start": 1.0, "twins": 2}}
    assert migrate_trial(mine, 1) == mine
    today = {"agent": {"kind": "dqn", "start": 1}}
    assert migrate_trial(today, 2) == today
    assert migrate_trial(None, 1) is None
