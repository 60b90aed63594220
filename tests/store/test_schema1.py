"""A run directory of schema 1, written by an earlier version: it is read and played, but not resumed.

`schema1/` holds a PPO session that was stopped after 5,056 of 40,000 frames.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from rldsl import PPO, Classic
from rldsl.agents.base import AgentContext
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.store import (
    CheckpointOutdated,
    MetricsReader,
    Runs,
    SessionDir,
    checkpoint_frames,
    last_row,
    load_checkpoint,
    read_metrics,
)

FIXTURE = Path(__file__).parent / "schema1"
ID = "46894f73974a-s0"


@pytest.fixture
def directory(tmp_path: Path) -> SessionDir:
    shutil.copytree(FIXTURE, tmp_path / "runs")
    (found,) = Runs(tmp_path / "runs").sessions()
    return found


def test_the_directory_is_found_under_its_old_id(directory: SessionDir) -> None:
    assert directory.id == ID
    assert Runs(directory.path.parents[2]).find(ID[:6]) == directory
    assert directory.state() == "resume"


def test_renamed_fields_of_the_session_are_read(directory: SessionDir) -> None:
    record = directory.read_session()
    assert record["schema"] == 1 and "grad_clip" in record["trial"]["agent"]
    session = Session.from_record(record)
    assert isinstance(session.trial.agent, PPO) and session.trial.agent.max_grad_norm == 0.5
    assert session.trial.env == Classic("CartPole-v1", num_envs=2)
    assert (session.seed, session.target.score, session.trial.budget.frames) == (0, 400.0, 40_000)


def test_an_old_session_is_never_mistaken_for_a_new_one(directory: SessionDir) -> None:
    """The schema is part of the id, so planning the same settings makes a new session."""
    assert Session.from_record(directory.read_session()).id != ID


def test_renamed_columns_of_the_metrics_are_read(directory: SessionDir) -> None:
    assert "episode_return" not in directory.metrics.read_text()
    metrics = read_metrics(directory.metrics)
    assert metrics["frame"] == [1024, 2048, 3072, 4096]
    assert metrics["episode_return"][-1] == pytest.approx(24.77, abs=0.005)
    assert metrics["episode_return_ma"][-1] == pytest.approx(sum(metrics["episode_return"]) / 4)
    assert last_row(directory.metrics)["episode_return"] == metrics["episode_return"][-1]
    assert [row["episode_return"] for row in MetricsReader(directory.metrics).read_new()] == metrics["episode_return"]


def test_resuming_is_refused_with_one_sentence(directory: SessionDir) -> None:
    assert checkpoint_frames(directory.checkpoints) == [5056]
    sentence = (
        r"^the checkpoint .*/000000005056 has schema 1 and this version has 2: it can be played, but its training"
    )
    with pytest.raises(CheckpointOutdated, match=sentence) as error:
        load_checkpoint(directory.checkpoints)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("tag", "frame"), [("best", 1024), (None, 5056)])
def test_its_policies_can_be_played(directory: SessionDir, tag: str | None, frame: int) -> None:
    saved = load_checkpoint(directory.checkpoints, tag=tag, any_schema=True)
    assert saved is not None and saved.frame == frame and saved.damaged == []
    session = Session.from_record(directory.read_session())
    env = implementation(session.trial.env)(session.trial.env, 1, 1)
    context = AgentContext(
        specs=[session.trial.agent],
        seeds=[session.seed],
        spaces=env.spaces,
        num_envs=1,
        frames=session.trial.budget.frames,
        compute=session.trial.compute,
    )
    agent = implementation(session.trial.agent)(context)
    agent.restore_policy(0, saved.state["agent"])
    policy = agent.policy(1, True, [session.seed])
    observation, steps = env.reset([0]), 0
    while not (step := env.step(policy(observation[None], np.array([[steps == 0]]))[0])).ended.size:
        observation, steps = step.observation, steps + 1
    assert steps >= 7, "the shortest possible episode has 8 steps"
