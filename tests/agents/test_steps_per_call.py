"""Gradient steps of DQN that are one compiled call: how many, and the same steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rldsl import DQN, MLP, Classic, Prioritized, experiment
from rldsl.agents.dqn import MAX_STEPS_PER_CALL, DQNAgent
from rldsl.compile import inductor
from rldsl.spec.session import Session
from rldsl.store.provenance import Provenance
from rldsl.train.pack import Pack, open_directories

SMALL = DQN(learning_starts=64, updates_per_frame=1.0, batch=16, net=MLP((16,)), target_every=12)


def trained(agent: DQN, folder: Path, compile: Any) -> DQNAgent:
    builder = experiment("x").env(Classic("CartPole-v1", num_envs=4)).agent(agent).frames(192)
    trial = builder.compute(compile=compile).build().base()
    sessions = [Session(experiment="x", trial=trial, seed=seed) for seed in range(2)]
    pack = Pack(sessions, open_directories(folder, sessions), Provenance({}, ""))
    assert pack.run(lambda: None) == "done"
    assert isinstance(pack.agent, DQNAgent)
    return pack.agent


@pytest.fixture
def as_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are run as they were traced, without a C++ compiler."""

    def run(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[[], inductor.Built]:
        return lambda: inductor.Built(lambda inputs: torch.no_grad()(graph)(*inputs), "torch", None)

    monkeypatch.setattr(inductor, "compile_graph", run)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("as_traced")
@pytest.mark.parametrize(
    "agent", [SMALL, SMALL.with_(double=True, prioritized=Prioritized(), n_step=3)], ids=["plain", "prioritized"]
)
def test_steps_in_one_call_are_those_of_several(agent: DQN, tmp_path: Path) -> None:
    alone, together = (trained(agent, tmp_path / compile, compile) for compile in ("off", "on"))
    assert (alone.update.steps_per_call, together.update.steps_per_call) == (1, 4)
    assert alone.updates == together.updates == 128
    torch.testing.assert_close(alone.update.flat, together.update.flat, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(alone.target, together.target, rtol=1e-3, atol=1e-4)
    for name, metrics in alone.metrics().items():
        torch.testing.assert_close(metrics, together.metrics()[name], rtol=1e-2, atol=1e-3)
    if alone.replay.priorities and together.replay.priorities:
        ours, theirs = (torch.from_numpy(one.replay.priorities.tree.levels[0]) for one in (alone, together))
        torch.testing.assert_close(ours, theirs, rtol=1e-2, atol=1e-3)


@pytest.mark.usefixtures("as_traced")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 4),
        ({"target_every": 10}, 2),
        ({"target_every": 1}, 1),
        ({"updates_per_frame": 0.5}, 2),
        ({"updates_per_frame": 0.3}, 1),
        ({"updates_per_frame": 0.25}, 1),
        ({"learning_starts": 65}, 1),
        ({"updates_per_frame": 6.0, "target_every": 100}, 4),
        ({"updates_per_frame": 4.0, "target_every": 1600}, MAX_STEPS_PER_CALL),
    ],
)
def test_as_many_steps_are_one_call_as_the_target_allows(
    settings: dict[str, Any], expected: int, tmp_path: Path
) -> None:
    agent = trained(SMALL.with_(**settings), tmp_path, "on")
    assert agent.update.steps_per_call == expected
    assert agent.updates == agent.spec.updates(192)
