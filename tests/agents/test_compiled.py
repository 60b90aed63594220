"""Every algorithm's whole update is one graph: it traces without a break, whatever its options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rldsl import A2C, DQN, MLP, PPO, SAC, SIL, AdamW, Classic, CrossQ, Prioritized, Reinforce, Sarsa, experiment
from rldsl.compile import inductor
from rldsl.spec.agent import Agent
from rldsl.spec.session import Session
from rldsl.store.provenance import Provenance
from rldsl.train.pack import Pack, open_directories
from tests.agents.tiny import Secret

REPLAY: dict[str, Any] = {"learning_starts": 64, "updates_per_frame": 0.1, "batch": 16, "net": MLP((16,))}
SMALL = PPO(rollout=32, minibatch=64, epochs=1)
CASES = {
    "ppo, continuous": (SMALL.with_(normalize_observations=True, normalize_rewards=True), "Pendulum-v1"),
    "ppo, squashed": (
        SMALL.with_(squash=True, log_std=None, value_clip=True, value_target_scaling=True),
        "Pendulum-v1",
    ),
    "ppo, shared": (SMALL.with_(shared=True, value_clip=True, optimizer=AdamW()), "CartPole-v1"),
    "ppo, self-imitation": (SMALL.with_(sil=SIL(updates=2, batch=32, buffer=500)), "CartPole-v1"),
    "ppo, asymmetric": (SMALL.with_(normalize_observations=True), Secret(num_envs=4)),
    "a2c": (A2C(rollout=16, critic_lr=1e-3), "Pendulum-v1"),
    "reinforce": (Reinforce(rollout=16), "CartPole-v1"),
    "sarsa": (Sarsa(), "CartPole-v1"),
    "dqn": (DQN(**REPLAY, double=True, dueling=True, prioritized=Prioritized()), "CartPole-v1"),
    "dqn, two together": (
        DQN(**REPLAY | {"updates_per_frame": 0.5}, double=True, prioritized=Prioritized(), target_every=10),
        "CartPole-v1",
    ),
    "sac": (SAC(**REPLAY), "Pendulum-v1"),
    "sac, discrete": (SAC(**REPLAY, critic_reduction="mean", policy_delay=2), "CartPole-v1"),
    "crossq": (CrossQ(**REPLAY), "Pendulum-v1"),
    "crossq, discrete": (CrossQ(**REPLAY), "CartPole-v1"),
}


@pytest.mark.parametrize(("agent", "env"), CASES.values(), ids=CASES.keys())
def test_the_whole_update_is_one_graph(
    agent: Agent, env: str | Secret, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_traced(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[[], inductor.Built]:
        return lambda: inductor.Built(lambda inputs: torch.no_grad()(graph)(*inputs), "torch", None)

    monkeypatch.setattr(inductor, "compile_graph", as_traced)  # a C++ compiler would take minutes
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    task = Classic(env, num_envs=4) if isinstance(env, str) else env
    trial = experiment("x").env(task).agent(agent).frames(512).compute(compile="on").build().base()
    sessions = [Session(experiment="x", trial=trial, seed=seed) for seed in range(2)]
    pack = Pack(sessions, open_directories(tmp_path, sessions), Provenance({}, ""))
    assert pack.run(lambda: None) == "done"
    assert pack.agent.notes()["compiled"] is True
