"""A session in a game: bytes all the way to the network, life losses in the rollout, and another start after a stop."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rldsl import DQN, PPO, SAC, Atari, Conv, CrossQ, Prioritized
from rldsl.agents.ppo import PPOAgent
from rldsl.train.pack import Pack
from tests.project import events
from tests.train.packs import curve, session, train

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
    assert resumed.agent.rollout.starts[0].all(), "a recurrent policy resets its state for the new games"
    whole = train(tmp_path, one)
    starts = [event["frame"] for event in events(whole.directories[0].path) if event["event"] == "started"]
    assert starts == [0, 64, 96] and whole.frame == 128
    assert curve(whole.directories[0].path)["frame"].tolist() == [32, 64, 96, 128]


REPLAYED: dict[str, Any] = {"learning_starts": 48, "updates_per_frame": 0.125, "batch": 8, "buffer": 200, "net": SMALL}
OFF_POLICY = {
    "dqn": DQN(**REPLAYED, double=True, dueling=True, prioritized=Prioritized(), n_step=3),
    "sac": SAC(**REPLAYED),
    "crossq": CrossQ(**REPLAYED, critic_net=SMALL),
}


@pytest.mark.parametrize("agent", OFF_POLICY.values(), ids=OFF_POLICY)
def test_replay_keeps_bytes_and_goes_on_after_a_stop(agent: DQN | SAC | CrossQ, tmp_path: Path) -> None:
    one = session(agent, BREAKOUT, frames=256, log_every=32, checkpoint_every=32)
    stopped = train(tmp_path, one, stop=lambda pack: "enough" if pack.frame >= 128 else None)
    learner: Any = stopped.agent
    assert learner.replay.observation.dtype == np.uint8 and learner.replay.observation.any()
    assert 0 < learner.updates == agent.updates(stopped.frame)
    whole = train(tmp_path, one)
    resumed: Any = whole.agent
    assert whole.frame == 256 and resumed.updates == agent.updates(256)
    assert np.isfinite(curve(whole.directories[0].path)["value_loss"][-1])
    assert not torch.equal(resumed.update.flat, learner.update.flat)
