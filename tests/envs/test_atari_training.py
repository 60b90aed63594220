"""A session in a game: bytes all the way to the network, life losses in the rollout, and another start after a stop."""

from pathlib import Path

import numpy as np
import pytest
import torch
from project import events
from train.packs import curve, session, train

from rldsl import PPO, Atari, Conv
from rldsl.agents.ppo import PPOAgent
from rldsl.train.pack import Pack

SMALL = Conv(layers=((4, 8, 8), (4, 3, 2)), hidden=(8,))
AGENT = PPO(rollout=16, minibatch=16, epochs=1, clip=0.1, net=SMALL, shared=True)
BREAKOUT = Atari("Breakout", num_envs=2, noop_max=0)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    torch.set_num_threads(1)


def test_a_game_is_learned_from_as_bytes(tmp_path: Path) -> None:
    pack = train(tmp_path, session(AGENT, BREAKOUT, frames=128, log_every=32))
    assert isinstance(pack.agent, PPOAgent)
    assert pack.agent.rollout.observation.dtype == np.uint8 and pack.agent.rollout.observation.any()
    assert np.isfinite(curve(pack.directories[0].path)["value_loss"][1:]).all()


def test_after_a_stop_training_goes_on_and_the_games_start_anew(tmp_path: Path) -> None:
    one = session(AGENT, BREAKOUT, frames=128, log_every=32)

    def halfway(pack: Pack) -> str | None:
        return "enough" if pack.frame >= 64 else None

    stopped = train(tmp_path, one, stop=halfway)
    assert isinstance(stopped.agent, PPOAgent)
    learned = stopped.agent.update.flat.clone()
    resumed = train(tmp_path, one, stop=lambda pack: "looked")
    assert isinstance(resumed.agent, PPOAgent)
    assert resumed.frame == 96 and not torch.equal(resumed.agent.update.flat, learned)
    assert resumed.agent.rollout.starts[0].all(), "whoever remembers is told that these are new games"
    whole = train(tmp_path, one)
    lives = [told["frame"] for told in events(whole.directories[0].path) if told["event"] == "started"]
    assert lives == [0, 64, 96] and whole.frame == 128
    assert curve(whole.directories[0].path)["frame"].tolist() == [32, 64, 96, 128]
