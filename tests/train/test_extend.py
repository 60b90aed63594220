"""A session that continues a shorter one equals a session that was trained with the longer budget from the start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rldsl
from rldsl import DQN, PPO, SAC, Classic, Exponential, Linear, Steps
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.plan.existing import Existing
from rldsl.plan.extend import Extension, NotExtended, obstacle
from rldsl.plan.overrides import apply
from rldsl.plan.plan import make_plan
from rldsl.spec.budget import Budget
from rldsl.store.checkpoint import load_checkpoint
from rldsl.store.journal import read_journal
from tests.project import work

CARTPOLE = rldsl.experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(100)
PENDULUM = rldsl.experiment("pendulum").env(Classic("Pendulum-v1", num_envs=2)).log_every(100)
OFF_POLICY: dict[str, Any] = {"learning_starts": 100, "batch": 16, "buffer": 1000, "updates_per_frame": 0.1}
EXPERIMENTS = {
    "ppo": CARTPOLE.agent(PPO(rollout=32, minibatch=64, lr=Linear(1e-3, 0, over=5000))).evaluate(200, episodes=2),
    "sac": PENDULUM.agent(SAC(**OFF_POLICY)),
    "dqn": CARTPOLE.agent(DQN(**OFF_POLICY, lr=Steps((300,), (1e-3, 1e-4)), epsilon=Linear(1.0, 0.05, over=500))),
}


def train(builder: ExperimentBuilder, runs: Path) -> list[Path]:
    return [run.directory for run in rldsl.run(builder, runs=runs, verbose=False)]


def checkpoint(session: Path) -> dict[str, Any]:
    saved = load_checkpoint(session / "checkpoints")
    assert saved is not None
    return {name: part for name, part in saved.state.items() if name != "metrics"}  # these have seconds in them


def assert_same(a: Any, b: Any) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif hasattr(a, "tobytes"):
        assert a.tobytes() == b.tobytes()
    elif not hasattr(a, "segments"):
        assert a == b or (a != a and b != b)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_is_bit_equal_to_a_session_with_the_longer_budget(name: str, tmp_path: Path) -> None:
    builder = EXPERIMENTS[name].seeds(2)
    train(builder.frames(730), tmp_path / "a")  # the last iteration and the last log point are cut short
    extended = train(builder.frames(1500), tmp_path / "a")
    whole = train(builder.frames(1500), tmp_path / "b")
    assert len(extended) == 2
    for one, other in zip(extended, whole, strict=True):
        assert work(one) == work(other)
        assert_same(checkpoint(one), checkpoint(other))
        events = [event for event in read_journal(one / "journal.jsonl") if event["event"] != "checkpoint"]
        assert [event["event"] for event in events] == ["extended", "created", "started", "done"]
        assert 0 < events[0]["frame"] < 730 and events[2]["frame"] == events[0]["frame"]
        assert events[0]["source"].endswith(one.name.replace("seed-", "-s")) and events[0]["code"] == events[2]["code"]


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_with_the_default_log_interval_it_has_the_log_points_of_the_longer_session(name: str, tmp_path: Path) -> None:
    builder = replace(EXPERIMENTS[name], budget=Budget(1)).seeds(1)  # without .log_every: 1/400 of the budget
    train(builder.frames(2404), tmp_path / "a")
    (extended,) = train(builder.frames(4808), tmp_path / "a")
    (whole,) = train(builder.frames(4808), tmp_path / "b")
    assert read_journal(extended / "journal.jsonl")[0]["event"] == "extended"
    assert len(work(extended)) > 390 and work(extended) == work(whole)
    ours, theirs = checkpoint(extended), checkpoint(whole)
    best = [state["world"]["recorder"].pop("best") for state in (ours, theirs)]
    assert best[0] >= best[1], "the best policy may be one of a log point in between"
    assert_same(ours, theirs)


def test_the_shorter_session_stays_as_it_is(tmp_path: Path) -> None:
    builder = EXPERIMENTS["ppo"].seeds(1)
    (short,) = train(builder.frames(730), tmp_path)
    before = {path: path.read_bytes() for path in sorted(short.rglob("*")) if path.is_file()}
    (longer,) = train(builder.frames(1500), tmp_path)
    assert longer != short
    assert {path: path.read_bytes() for path in sorted(short.rglob("*")) if path.is_file()} == before


def extension(builder: ExperimentBuilder, runs: Path) -> Extension | NotExtended | None:
    existing = Existing(runs)
    (planned,) = existing.sessions(make_plan(apply([builder.build()], [])))
    return existing.extension(planned)


def test_only_finished_sessions_with_the_same_settings_are_continued(tmp_path: Path) -> None:
    builder = EXPERIMENTS["ppo"].seeds(1)
    (short,) = train(builder.frames(730), tmp_path)
    found = extension(builder.frames(1500), tmp_path)
    assert isinstance(found, Extension) and found.source.path == short and found.frames == 730
    assert extension(builder.frames(512), tmp_path) is None
    assert extension(builder.seeds(1, first=1).frames(1500), tmp_path) is None
    assert extension(builder.agent(PPO(rollout=32, minibatch=64, gamma=0.9)).frames(1500), tmp_path) is None
    journal = short / "journal.jsonl"
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(line for line in lines if '"event": "done"' not in line) + "\n")
    assert extension(builder.frames(1500), tmp_path) is None


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        (PPO(lr=Linear(1e-3)), "agent.lr depends on the whole budget, so it is a different trial"),
        (PPO(lr=Exponential(1e-3, 1e-4, over=0.5)), "agent.lr depends on the whole budget"),
        (PPO(lr=Linear(1e-3, over=1e4)), None),
        (PPO(lr=Steps((100,), (1e-3, 1e-4))), None),
        (PPO(), None),
    ],
)
def test_schedules_decide(agent: PPO, reason: str | None) -> None:
    shorter, longer = (CARTPOLE.agent(agent).frames(frames).build().base() for frames in (1e5, 2e5))
    found = obstacle(shorter, longer)
    assert found is None if reason is None else (found or "").startswith(reason)


def test_another_log_interval_or_sampled_evaluation_is_in_the_way() -> None:
    ppo = rldsl.experiment("x").env(Classic("CartPole-v1")).agent(PPO())
    shorter, double, longer = (ppo.frames(frames).build().base() for frames in (1e5, 2e5, 2.5e5))
    continued = "--set log_every=250 continues it"
    assert obstacle(shorter, double) is None
    assert obstacle(shorter, longer) == f"it has a log point every 250 frames, and 625 is not a multiple: {continued}"
    hooked = double.with_(on_log="mine:stop")
    assert obstacle(shorter, hooked) == f"its .on_log function was called every 250 frames: {continued}"
    sampled = ppo.agent(PPO(lr=Linear(1e-3, over=10))).log_every(100).evaluate(200, deterministic=False)
    assert "sampled" in (obstacle(*(sampled.frames(frames).build().base() for frames in (1e5, 2e5))) or "")
