"""Every algorithm finds the optimum, and every critic the values, of tasks that can be solved by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rldsl import (
    A2C,
    DQN,
    MLP,
    PPO,
    SAC,
    SIL,
    Adam,
    Agent,
    CrossQ,
    Environment,
    Linear,
    Prioritized,
    Recurrent,
    Reinforce,
    Sarsa,
)
from rldsl.train.pack import Pack
from tests.agents.tiny import Bandit, Chain, Endless, Recall, Throw
from tests.train.packs import curve, session, train

NET, CELL, ADAM = MLP((16,)), Recurrent((8,), size=8), Adam()
PLAIN = {
    "reinforce": Reinforce(rollout=8, lr=0.02, net=NET),
    "a2c": A2C(rollout=8, lr=0.02, net=NET, optimizer=ADAM),
    "ppo": PPO(rollout=8, minibatch=32, epochs=4, lr=0.01, net=NET),
    "ppo_sil": PPO(rollout=8, minibatch=32, epochs=2, lr=0.01, net=NET, sil=SIL(batch=32, updates=2)),
}
SARSA = {
    "sarsa_epsilon": Sarsa(rollout=8, lr=0.02, net=NET, epsilon=0.1),
    "sarsa_boltzmann": Sarsa(rollout=8, lr=0.02, net=NET, explore="boltzmann", temperature=0.1),
}
TD = {
    "reinforce": Reinforce(rollout=12, lr=Linear(0.02), net=NET, gamma=0.5),
    "a2c": A2C(rollout=12, lr=Linear(0.02), net=NET, gamma=0.5, lam=0.0, optimizer=ADAM),
    "a2c_n_step": A2C(rollout=12, lr=Linear(0.02), net=NET, gamma=0.5, n_step=1, optimizer=ADAM),
    "ppo": PPO(rollout=12, minibatch=48, epochs=2, lr=Linear(0.02), net=NET, gamma=0.5, lam=0.0),
    "sarsa": Sarsa(rollout=12, lr=Linear(0.02), net=NET, gamma=0.5, epsilon=0.1),
    "ppo_recurrent": PPO(rollout=6, minibatch=48, epochs=4, lr=Linear(0.02), net=CELL, gamma=0.5, lam=0.0),
    "a2c_recurrent": A2C(rollout=6, lr=Linear(0.02), net=CELL, gamma=0.5, lam=0.0, optimizer=ADAM),
}
"""Their value is that of one step at a time, but for REINFORCE, which takes whole returns."""


def solve(path: Path, agent: Agent, env: Environment, frames: int) -> Pack:
    pack = train(path, session(agent, env, frames=frames, log_every=frames // 4))
    assert pack.directories[0].state() == "done"
    return pack


def values(pack: Pack, observations: np.ndarray) -> np.ndarray:
    """The critic's values of episodes `[T, ...]` of observations; for action values, those of the better action."""
    agent = pack.agent
    params, seen = agent.network.layout.views(agent.update.flat), torch.from_numpy(observations).float().unsqueeze(0)
    with torch.no_grad():
        if hasattr(agent.network, "q"):
            return agent.network.q(params, seen)[0].max(-1).values.numpy()
        if not agent.recurrent:
            return agent.network.value(params, seen)[0].numpy()
        starts = (torch.arange(len(observations)) == 0).view(1, -1, 1)
        state = torch.zeros(1, 1, agent.network.state_size)
        return agent.network.unroll_value(params, seen.unsqueeze(2), starts, state).flatten().numpy()


REPLAY: dict[str, Any] = {
    "learning_starts": 64,
    "updates_per_frame": 0.25,
    "batch": 32,
    "net": MLP((16,), activation="relu"),
}
OFF_POLICY: dict[str, Agent] = {
    "dqn": DQN(**REPLAY, lr=0.01, epsilon=0.1, target_every=20),
    "dqn_boltzmann": DQN(**REPLAY, lr=0.01, explore="boltzmann", temperature=0.1, dueling=True, double=True),
    "dqn_prioritized": DQN(
        **REPLAY, lr=0.01, epsilon=0.1, prioritized=Prioritized(), n_step=2, tau=0.1, target_every=1
    ),
    "sac": SAC(**REPLAY, lr=0.01, alpha=0.05),
    "crossq": CrossQ(**REPLAY, lr=0.01, alpha=0.05, critic_net=None, renorm_after=200),
}
OFF_POLICY_TD: dict[str, Agent] = {
    "dqn": DQN(**REPLAY, gamma=0.5, lr=Linear(0.01), target_every=10),
    "dqn_double": DQN(**REPLAY, gamma=0.5, lr=Linear(0.01), tau=0.05, target_every=1, double=True, dueling=True),
    "dqn_n_step": DQN(**REPLAY, gamma=0.5, lr=Linear(0.01), target_every=10, n_step=3, prioritized=Prioritized()),
}


@pytest.mark.parametrize("name", OFF_POLICY)
def test_replay_finds_the_better_arm(name: str, tmp_path: Path) -> None:
    pack = solve(tmp_path, OFF_POLICY[name], Bandit(num_envs=8), frames=2400)
    choice = pack.agent.policy(1, True, [0])(np.ones((1, 1, 1), np.float32), np.ones((1, 1), bool))
    assert choice == 1
    assert curve(pack.directories[0].path)["episode_return"][-1] > 0.8


@pytest.mark.parametrize("name", ["sac", "crossq"])
def test_replay_finds_the_best_number(name: str, tmp_path: Path) -> None:
    agent = OFF_POLICY[name].with_(alpha=0.001, lr=0.005, updates_per_frame=0.5)
    pack = solve(tmp_path, agent, Throw(num_envs=8), frames=3200)
    said = pack.agent.policy(1, True, [0])(np.ones((1, 1, 1), np.float32), np.ones((1, 1), bool))
    assert said.item() == pytest.approx(0.3, abs=0.15)


@pytest.mark.parametrize("name", OFF_POLICY_TD)
def test_replay_learns_the_values_of_a_chain(name: str, tmp_path: Path) -> None:
    """1 at the last of five states, half of it one state before, and so on."""
    pack = solve(tmp_path, OFF_POLICY_TD[name], Chain(num_envs=4), frames=4800)
    np.testing.assert_allclose(values(pack, np.eye(5, dtype=np.float32)), 0.5 ** np.arange(4, -1, -1), atol=0.05)


@pytest.mark.parametrize("name", OFF_POLICY_TD)
@pytest.mark.parametrize(("ends", "expected"), [("truncated", [1.0, 2.0]), ("terminated", None)])
def test_replay_bootstraps_where_time_ran_out(name: str, ends: Any, expected: Any, tmp_path: Path) -> None:
    """Cut by the clock, B is worth 1 / (1 - gamma); where the episode ends, less."""
    pack = solve(tmp_path, OFF_POLICY_TD[name], Endless(num_envs=4, ends=ends), frames=4800)
    found = values(pack, np.eye(2, dtype=np.float32))
    if expected is not None:
        np.testing.assert_allclose(found, expected, atol=0.1)
    else:
        assert found[1] < 1.6


def test_the_temperature_learns_to_keep_the_entropy(tmp_path: Path) -> None:
    """Nothing to choose between the arms for: without a reward the entropy settles at its target."""
    agent = SAC(**REPLAY, lr=0.01, gamma=0.0, entropy_ratio=0.5, init_alpha=0.05)
    pack = solve(tmp_path, agent, Bandit(num_envs=8), frames=6400)
    assert curve(pack.directories[0].path)["entropy"][-1] == pytest.approx(0.5 * np.log(2), abs=0.12)


@pytest.mark.parametrize("name", [*PLAIN, *SARSA])
def test_the_better_arm_is_found(name: str, tmp_path: Path) -> None:
    pack = solve(tmp_path, (PLAIN | SARSA)[name], Bandit(num_envs=8), frames=4800)
    choice = pack.agent.policy(1, True, [0])(np.ones((1, 1, 1), np.float32), np.ones((1, 1), bool))
    assert choice == 1
    assert curve(pack.directories[0].path)["episode_return"][-1] > 0.9


@pytest.mark.parametrize("name", SARSA)
def test_sarsa_learns_what_each_arm_gives(name: str, tmp_path: Path) -> None:
    agent = SARSA[name].with_(temperature=1.0)
    pack = solve(tmp_path, agent, Bandit(num_envs=8), frames=6400)
    params = pack.agent.network.layout.views(pack.agent.update.flat)
    np.testing.assert_allclose(pack.agent.network.q(params, torch.ones(1, 1, 1))[0, 0], [0.2, 1.0], atol=0.05)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, {"log_std": -0.5}) for name in ("reinforce", "a2c", "ppo", "ppo_sil")),
        *(("ppo", {"log_std": log_std, "squash": squash}) for log_std, squash in ((None, False), (-0.5, True))),
    ],
    ids=str,
)
def test_the_best_number_is_found(name: str, kind: dict[str, Any], tmp_path: Path) -> None:
    agent = PLAIN[name].with_(**kind, entropy=0.01, lr=Linear(PLAIN[name].lr / 2))
    pack = solve(tmp_path, agent, Throw(num_envs=8), frames=6400)
    said = pack.agent.policy(1, True, [0])(np.ones((1, 1, 1), np.float32), np.ones((1, 1), bool))
    assert said.item() == pytest.approx(0.3, abs=0.1)


@pytest.mark.parametrize("name", ["reinforce", "a2c", "a2c_n_step", "ppo", "sarsa"])
def test_the_values_of_a_chain_are_powers_of_gamma(name: str, tmp_path: Path) -> None:
    pack = solve(tmp_path, TD[name].with_(gamma=0.8), Chain(num_envs=4), frames=12_000)
    np.testing.assert_allclose(values(pack, np.eye(5)), 0.8 ** np.arange(4, -1, -1), atol=0.06)


A, B = [1.0, 0.0], [0.0, 1.0]


@pytest.mark.parametrize("name", TD)
def test_what_a_time_limit_cuts_is_worth_the_value_of_its_last_observation(name: str, tmp_path: Path) -> None:
    """V(B) = 1 + 0.5 V(B) = 2 and V(A) = 0.5 V(B) = 1, as if there were no limit; see the next test for its absence."""
    frames = 2400 if "recurrent" in name else 9600
    pack = solve(tmp_path, TD[name], Endless(num_envs=4 if frames > 2400 else 8), frames=frames)
    np.testing.assert_allclose(values(pack, np.array([A, B, B])), [1.0, 2.0, 2.0], atol=0.12)


@pytest.mark.parametrize(
    ("name", "of_a", "of_b"),
    [
        # one step at a time: half of the steps in B lead to B again, V(B) = 1 + 0.5 * 0.5 V(B)
        *((name, 2 / 3, 4 / 3) for name in ("a2c", "a2c_n_step", "ppo", "sarsa")),
        # whole returns: 1 + 0.5 and 1 in B, 0.5 * 1.5 in A
        ("reinforce", 0.75, 1.25),
    ],
)
def test_after_a_true_end_nothing_follows(name: str, of_a: float, of_b: float, tmp_path: Path) -> None:
    pack = solve(tmp_path, TD[name], Endless(num_envs=4, ends="terminated"), frames=9600)
    np.testing.assert_allclose(values(pack, np.array([A, B])), [of_a, of_b], atol=0.12)


RECALLING = {
    "ppo": PPO(rollout=12, minibatch=192, epochs=4, lr=0.01, gamma=0.9, shared=True),
    "a2c": A2C(rollout=6, lr=0.02, gamma=0.9, shared=True, optimizer=ADAM),
}


@pytest.mark.parametrize("name", RECALLING)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_recurrent_network_recalls_what_it_saw(name: str, cell: str, tmp_path: Path) -> None:
    agent = RECALLING[name].with_(net=Recurrent((8,), cell=cell, size=8))
    pack = solve(tmp_path, agent, Recall(num_envs=16), frames=12_288)
    assert curve(pack.directories[0].path)["episode_return"][-1] > 0.9


def test_a_network_without_memory_cannot_recall(tmp_path: Path) -> None:
    pack = solve(tmp_path, RECALLING["ppo"].with_(net=MLP((16,))), Recall(num_envs=16), frames=12_288)
    assert abs(curve(pack.directories[0].path)["episode_return"][-1]) < 0.5
