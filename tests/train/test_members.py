"""A member of a pack trains as it would alone, whatever its neighbours do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rldsl import PPO, SIL, Agent, Classic, Environment
from rldsl.agents.base import AgentContext
from rldsl.agents.on_policy import shuffled
from rldsl.agents.ppo import PPOAgent
from rldsl.envs.classic import make
from rldsl.train.pack import Pack
from tests.project import events, work
from tests.train.packs import CARTPOLE, CASES, NORMALIZED, PENDULUM, PPO_SMALL, curve, session, three_apart, train

LEARNING = [name for name in CASES if name != "random"]


def paths(pack: Pack) -> list[Path]:
    return [directory.path for directory in pack.directories]


@pytest.mark.parametrize("name", LEARNING)
def test_members_train_together_as_they_train_alone(name: str, tmp_path: Path) -> None:
    agent, env = CASES[name]
    frames = 192 if "recurrent" in name else 512
    sessions = [session(one, env, seed, frames=frames) for seed, one in enumerate(three_apart(agent))]
    together = train(tmp_path / "together", *sessions)
    for member, one in enumerate(sessions):
        alone = train(tmp_path / "alone", one)
        ours, its_own = together.agent.update.flat[member], alone.agent.update.flat[0]
        np.testing.assert_allclose(ours, its_own, rtol=1e-3, atol=1e-4)
        curves = curve(paths(together)[member]), curve(paths(alone)[0])
        assert curves[0].keys() == curves[1].keys()
        for column, ours in curves[0].items():
            np.testing.assert_allclose(ours, curves[1][column], rtol=5e-3, atol=1e-4, err_msg=column)
        np.testing.assert_array_equal(curves[0]["episodes"], curves[1]["episodes"])


def test_members_that_differ_train_differently(tmp_path: Path) -> None:
    pack = train(tmp_path, *(session(one, seed=7) for one in three_apart(PPO_SMALL)))
    assert not any(torch.allclose(pack.agent.update.flat[0], other, atol=1e-3) for other in pack.agent.update.flat[1:])


def ppo(*seeds: int) -> PPOAgent:
    return PPOAgent(
        AgentContext([PPO_SMALL] * len(seeds), seeds, make("CartPole-v1", 1).spaces, num_envs=2, frames=512)
    )


def test_chance_is_bit_for_bit_the_same_alone_and_together() -> None:
    together, alone = ppo(3, 4, 5), ppo(4)
    assert torch.equal(together.update.flat[1], alone.update.flat[0])
    noises = [agent.actions.noise(agent.streams["act"][at], 8, 2) for agent, at in ((together, 1), (alone, 0))]
    np.testing.assert_array_equal(*noises)
    orders = [torch.cat(list(shuffled(agent.streams["shuffle"], 64, 16)), 1) for agent in (together, alone)]
    assert torch.equal(orders[0][1], orders[1][0])
    assert not torch.equal(orders[0][0], orders[0][1])


def test_every_use_of_chance_has_a_stream_of_its_own() -> None:
    drawn = [tuple(streams[0].integers(2**32, size=4)) for streams in ppo(0).streams.values()]
    assert len(set(drawn)) == len(drawn)


IMITATING = [PPO_SMALL.with_(sil=SIL(batch=32, updates=1))] * 4
HALTING = [PPO_SMALL.with_(target_kl=1e-4, epochs=6, lr=lr) for lr in (1e-3, 1e-9)]


@pytest.mark.parametrize("agents", [IMITATING, HALTING], ids=["self-imitation", "target_kl"])
def test_a_member_does_not_wait_for_another(agents: list[Agent], tmp_path: Path) -> None:
    """Members have enough episodes to imitate, or have moved far enough in an iteration, at different times."""
    sessions = [session(agent, seed=seed, frames=384) for seed, agent in enumerate(agents)]
    together = train(tmp_path / "together", *sessions)
    for member, one in enumerate(sessions):
        alone = train(tmp_path / "alone", one)
        np.testing.assert_allclose(together.agent.update.flat[member], alone.agent.update.flat[0], rtol=1e-3, atol=1e-4)


def test_members_begin_to_imitate_at_different_times(tmp_path: Path) -> None:
    seen: list[list[bool]] = []
    sessions = [session(agent, seed=seed) for seed, agent in enumerate(IMITATING)]
    train(tmp_path, *sessions, stop=lambda pack: seen.append(imitated(pack)))
    assert any(any(now) and not all(now) for now in seen), "otherwise the test before this one shows nothing"


def imitated(pack: Pack) -> list[bool]:
    """Whether each member took more steps of the optimizer than PPO alone takes."""
    agent = pack.agent
    alone = pack.frame // 64 * PPO_SMALL.epochs * 4
    return [count > alone for count in agent.update.state["step"].tolist()]


POISONED: dict[str, tuple[Agent, Environment]] = {name: CASES[name] for name in LEARNING} | {
    "ppo_normalized": (NORMALIZED, CARTPOLE),
}


@pytest.mark.parametrize("name", POISONED)
def test_one_members_nan_does_not_touch_another(name: str, tmp_path: Path) -> None:
    agent, env = POISONED[name]
    sessions = [session(agent, env, seed) for seed in range(3)]

    def poison(pack: Pack) -> None:
        if pack.frame >= 192 and pack.active[1]:
            pack.agent.update.flat[1, 0] = torch.nan

    healthy, poisoned = train(tmp_path / "healthy", *sessions), train(tmp_path / "poisoned", *sessions, stop=poison)
    for member in (0, 2):
        assert work(paths(poisoned)[member]) == work(paths(healthy)[member])
        assert torch.equal(poisoned.agent.update.flat[member], healthy.agent.update.flat[member])
        assert poisoned.directories[member].state() == "done"
    assert poisoned.directories[1].state() == "failed"


@pytest.mark.parametrize("env", [CARTPOLE, PENDULUM], ids=str)
def test_a_member_that_diverges_fails_with_a_reason_and_the_others_finish(env: Classic, tmp_path: Path) -> None:
    absurd = PPO_SMALL.with_(lr=3e38, max_grad_norm=1e30)
    pack = train(tmp_path, session(PPO_SMALL, env, 0), session(absurd, env, 1))
    assert pack.active == [True, False]
    assert [one["event"] for one in events(paths(pack)[0])][-1] == "done"
    last = events(paths(pack)[1])[-1]
    assert last["event"] == "failed" and last["frame"] == 64
    assert last["reason"] == "diverged: its parameters are not finite any more"
    assert len(work(paths(pack)[0])) == 8 and len(work(paths(pack)[1])) == 1
    assert not list(pack.directories[1].checkpoints.glob("*")), "what is not finite is never saved"


def test_a_pack_whose_members_all_diverge_ends_at_once(tmp_path: Path) -> None:
    absurd = PPO(rollout=32, minibatch=16, lr=3e38, max_grad_norm=1e30)
    pack = train(tmp_path, *(session(absurd, seed=seed) for seed in range(2)))
    assert pack.frame == 64
    assert [directory.state() for directory in pack.directories] == ["failed", "failed"]
