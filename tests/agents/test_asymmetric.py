"""A critic that sees more than the policy: it learns from it, and whoever has no such critic goes on as ever."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rldsl import A2C, DQN, MLP, PPO, SIL, Agent, Recurrent, Sarsa
from rldsl.spec.errors import SpecError
from tests.agents.test_solves import TD, solve, values
from tests.agents.tiny import Secret
from tests.project import events, work
from tests.train.packs import NORMALIZED, curve, session, train

NET = MLP((8,))
SMALL = PPO(rollout=8, minibatch=16, epochs=1, net=NET)
RECURRENT = SMALL.with_(net=Recurrent((8,), size=8), normalize_observations=True)


@pytest.mark.parametrize("name", ["reinforce", "a2c", "a2c_n_step", "ppo", "a2c_recurrent"])
def test_the_critic_learns_what_only_it_sees(name: str, tmp_path: Path) -> None:
    """With gamma = 0.5, 1 for ever is worth 2, and -1 for ever -2; no time limit ends it."""
    pack = solve(tmp_path, TD[name], Secret(num_envs=4), frames=4800)
    for cue, expected in ((0, -2.0), (1, 2.0)):
        told = np.tile(np.eye(2, dtype=np.float32)[cue], (3, 1))
        np.testing.assert_allclose(values(pack, told), expected, atol=0.1)


@pytest.mark.parametrize("name", ["a2c", "ppo"])
def test_it_explains_the_returns_that_no_other_critic_can(name: str, tmp_path: Path) -> None:
    explained = {}
    for told in (True, False):
        pack = solve(tmp_path / str(told), TD[name], Secret(num_envs=8, told=told), frames=4800)
        explained[told] = curve(pack.directories[0].path)["explained_variance"][-1]
    assert explained[True] > 0.98
    assert abs(explained[False]) < 0.2


@pytest.mark.parametrize(
    ("agent", "apart"),
    [(SMALL, 1e-6), (A2C(rollout=8, net=NET), 1e-6), (NORMALIZED, 1e-6)],
    ids=["ppo", "a2c", "normalised"],
)
def test_a_cut_episode_is_worth_what_its_last_observation_says(agent: Agent, apart: float, tmp_path: Path) -> None:
    """The cue is the same until the end, and so is its value; the next episode may have another.

    Normalised observations too: those of the end by the statistics of the last step, not by later ones.
    """
    learner = train(tmp_path, session(agent, Secret(num_envs=8), frames=512)).agent
    data = {name: tensor[0].numpy() for name, tensor in learner.compute_targets(learner.rollout).items()}
    value, cut = data["value"], data["ended"][:-1]
    assert (np.abs(value[1:] - value[:-1])[cut] > 5 * apart).any(), "no next episode differs"
    np.testing.assert_allclose(data["next_value"][:-1][cut], value[:-1][cut], atol=apart)


def test_a_session_with_memory_that_was_stopped_has_the_same_curve(tmp_path: Path) -> None:
    one = session(RECURRENT, Secret(num_envs=2), frames=256, log_every=32)
    whole = train(tmp_path / "whole", one)
    for frame in (80, 176, 256):
        pack = train(tmp_path / "broken", one, stop=lambda pack, frame=frame: "on" if pack.frame >= frame else None)
    assert work(pack.directories[0].path) == work(whole.directories[0].path)


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (SMALL.with_(shared=True), "shared=True is for a critic that sees what the policy sees, and here it sees more"),
        (SMALL.with_(sil=SIL()), "PPO.sil keeps only what the policy sees, and here the critic sees more: unset it"),
    ],
    ids=["shared", "sil"],
)
def test_what_cannot_see_more_is_refused(agent: Agent, sentence: str, tmp_path: Path) -> None:
    one = session(agent, Secret(num_envs=2))
    with pytest.raises(SpecError, match=sentence):
        train(tmp_path, one)
    assert events(tmp_path / one.directory)[-1]["reason"] == sentence


@pytest.mark.parametrize(
    "agent", [DQN(learning_starts=32, batch=16, buffer=128, net=NET), Sarsa(rollout=8, net=NET)], ids=str
)
def test_other_agents_see_what_the_policy_sees(agent: Agent, tmp_path: Path) -> None:
    """They train as if the critic were told nothing."""
    told, untold = (
        train(tmp_path / str(told), session(agent, Secret(num_envs=2, told=told), frames=128)) for told in (True, False)
    )
    assert work(told.directories[0].path) == work(untold.directories[0].path)
