"""A session that is pulled from a repository goes on as if it had never left its machine, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from rldsl.hub.pull import Pull
from rldsl.hub.push import Push
from rldsl.hub.repository import Repository
from tests.hub.loopback import Hub
from tests.hub.sessions import undescribed
from tests.project import events, work
from tests.train.packs import CASES, session, train

NAME = "me/results"
FRAMES = 1024


@pytest.mark.parametrize("name", ["ppo", "dqn_prioritized"])
def test_a_pulled_session_continues_exactly(name: str, hub: Hub, tmp_path: Path) -> None:
    """DQN's replay buffer is spread over files that checkpoints share."""
    torch.set_num_threads(1)
    agent, env = CASES[name]
    one = session(agent, env, 0, frames=FRAMES, log_every=64, checkpoint_every=128)
    train(tmp_path / "whole", one)
    train(tmp_path / "here", one, stop=lambda pack: "enough" if pack.frame >= FRAMES // 2 else None)
    Push(Repository(NAME), tmp_path / "here", undescribed).run([one.directory])
    assert Pull(Repository(NAME), tmp_path / "there").run().sessions == [one.directory]
    train(tmp_path / "there", one)
    pulled = tmp_path / "there" / one.directory
    resumed = [event for event in events(pulled) if event["event"] == "started"]
    assert [event["frame"] for event in resumed] == [0, FRAMES // 2]
    assert work(pulled) == work(tmp_path / "whole" / one.directory)
