"""`rldsl.run`: the sessions of the command `train`, in this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import rldsl
from rldsl import PPO, Classic, Random, SpecError, choice, experiment, grid, uniform
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from tests.agents.tiny import Chain
from tests.api.agents import Trouble, TroubleAgent
from tests.project import Project, events, work

CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=2)).frames(400).log_every(100)
SMALL = PPO(rollout=32, minibatch=32)
RANDOM = CARTPOLE.agent(Random()).seeds(2)

FILE = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=2)).frames(400).log_every(100)
    main(cartpole.agent(Random()).seeds(2))
"""


def journal(run: rldsl.Run) -> list[str]:
    return [one["event"] for one in events(run.directory)]


def test_it_trains_what_the_command_trains(project: Project, tmp_path: Path) -> None:
    project.write(FILE)
    assert project.python("exp.py").returncode == 0
    runs = rldsl.run(RANDOM, runs=tmp_path / "here")
    assert [(run.experiment, run.seed, run.state) for run in runs] == [("cartpole/random", n, "done") for n in (0, 1)]
    commanded = rldsl.load_runs(project.runs)
    assert [run.id for run in runs] == [run.id for run in commanded]
    for ours, expected in zip(runs, commanded, strict=True):
        assert ours.directory.relative_to(tmp_path / "here") == expected.directory.relative_to(project.runs)
        assert work(ours.directory) == work(expected.directory)
        assert ours.spec == expected.spec


def test_what_is_done_is_kept_and_what_is_missing_is_added(tmp_path: Path) -> None:
    first = rldsl.run(RANDOM.build(), runs=tmp_path, verbose=False)
    before = [(run.directory / "journal.jsonl").read_bytes() for run in first]
    again = rldsl.run(RANDOM, seeds=3, runs=tmp_path, verbose=False)
    assert [run.seed for run in again] == [0, 1, 2] and again[2].state == "done"
    assert [(run.directory / "journal.jsonl").read_bytes() for run in again[:2]] == before


def test_overrides_are_those_of_the_command(tmp_path: Path) -> None:
    (run,) = rldsl.run(CARTPOLE.agent(SMALL), frames=256, overrides={"gamma": 0.9, "rollout": 64}, runs=tmp_path)
    assert run.spec.trial.agent.gamma == 0.9 and run.spec.trial.budget.frames == 256
    assert [override.path for override in run.spec.overrides] == ["agent.gamma", "agent.rollout", "budget.frames"]
    with pytest.raises(SpecError, match="gama"):
        rldsl.run(RANDOM, overrides={"gama": 1}, runs=tmp_path)


def test_several_experiments_and_grids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ppo = CARTPOLE.agent(SMALL).frames(128).search(gamma=grid(0.9, 0.99))
    runs = rldsl.run(RANDOM, ppo, runs=tmp_path)
    assert [run.experiment for run in runs] == ["cartpole/random"] * 2 + ["cartpole/ppo-grid"] * 2
    lines = capsys.readouterr().out.splitlines()
    assert "training cartpole/random, seeds 0, 1" in lines and "training cartpole/ppo-grid, seeds 0, 0" in lines
    assert sum(line.startswith("done: ") for line in lines) == 4


@pytest.mark.parametrize(
    ("experiments", "sentence"),
    [
        ((), "run needs an experiment"),
        ((Random(),), "run\\(...\\) takes experiments, not a Random"),
    ],
)
def test_what_cannot_be_trained_is_refused(experiments: tuple[object, ...], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=sentence):
        rldsl.run(*experiments, runs=tmp_path)  # type: ignore[arg-type]


def test_a_search_runs_in_this_process(tmp_path: Path) -> None:
    axes = CARTPOLE.agent(SMALL).frames(512).search(gamma=uniform(0.9, 0.99))
    search = axes.asha(trials=4, grace=128, eta=2, min_results=4, seeds=(1, 2))
    runs = rldsl.run(search, runs=tmp_path)
    states = [(run.state, run.seed - SEARCH_SEEDS_FROM) for run in runs]
    assert sorted(states) == [("done", 0), ("done", 1), ("paused", 0), ("paused", 0), ("paused", 0), ("paused", 1)]
    before = [journal(run) for run in runs]
    again = rldsl.run(RANDOM, search, runs=tmp_path)
    assert [run.id for run in again[2:]] == [run.id for run in runs]
    assert [journal(run) for run in again[2:]] == before, "a finished search is left as it is"


def test_a_search_that_is_interrupted_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = CARTPOLE.agent(Trouble(what="ctrl-c")).search(num_envs=choice(1, 2)).random(trials=2)
    with pytest.raises(KeyboardInterrupt):
        rldsl.run(search, runs=tmp_path)
    monkeypatch.setattr(TroubleAgent, "armed", False)
    runs = rldsl.run(search, runs=tmp_path)
    assert {run.state for run in runs} == {"done"} and len(runs) == len({run.id for run in runs})


def test_ctrl_c_checkpoints_and_the_next_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = signal.getsignal(signal.SIGINT)
    trouble = CARTPOLE.agent(Trouble(what="ctrl-c")).seeds(2)
    with pytest.raises(KeyboardInterrupt):
        rldsl.run(trouble, runs=tmp_path / "stopped")
    assert signal.getsignal(signal.SIGINT) is handler
    for run in rldsl.load_runs(tmp_path / "stopped"):
        assert run.state == "resume" and journal(run)[-2:] == ["checkpoint", "stopped"]
        assert events(run.directory)[-1]["frame"] == 102
    monkeypatch.setattr(TroubleAgent, "armed", False)
    whole, stopped = (rldsl.run(trouble, runs=tmp_path / name) for name in ("whole", "stopped"))
    for ours, expected in zip(stopped, whole, strict=True):
        assert ours.state == "done" and work(ours.directory) == work(expected.directory)


def test_an_error_is_raised_here_and_the_next_run_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trouble = CARTPOLE.agent(Trouble(what="error"))
    with pytest.raises(ZeroDivisionError, match="in the agent"):
        rldsl.run(trouble, runs=tmp_path)
    (failed,) = rldsl.load_runs(tmp_path)
    assert failed.state == "failed"
    monkeypatch.setattr(TroubleAgent, "armed", False)
    (run,) = rldsl.run(trouble, runs=tmp_path)
    assert run.state == "done"


def test_a_breakpoint_stops_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[int] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stopped.append(os.getpid()))
    rldsl.run(CARTPOLE.agent(Trouble(what="breakpoint")), runs=tmp_path)
    assert stopped == [os.getpid()]


def test_it_trains_in_a_thread(tmp_path: Path) -> None:
    runs: list[rldsl.Run] = []
    thread = threading.Thread(target=lambda: runs.extend(rldsl.run(RANDOM, runs=tmp_path)))
    thread.start()
    thread.join(60)
    assert [run.state for run in runs] == ["done", "done"]


def test_it_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    before = signal.getsignal(signal.SIGINT), sys.excepthook, list(sys.path), list(warnings.filters)
    rldsl.run(CARTPOLE.agent(SMALL), frames=64, runs=tmp_path)
    assert (signal.getsignal(signal.SIGINT), sys.excepthook, list(sys.path), list(warnings.filters)) == before
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


def test_a_session_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    first, _ = rldsl.run(CARTPOLE.agent(Trouble()).seeds(2), runs=tmp_path)
    (first.directory / "journal.jsonl").write_text('{"time": 1.0, "event": "created"}\n')
    from rldsl.store.session_dir import SessionDir

    with SessionDir(first.directory).claim():
        runs = rldsl.run(CARTPOLE.agent(Trouble()).seeds(2), runs=tmp_path)
    assert journal(runs[0]) == ["created"]


def test_the_score_is_the_last_moving_average(tmp_path: Path) -> None:
    chain = experiment("chain").env(Chain(num_envs=2)).agent(Random()).frames(100).log_every(10)
    (run,) = rldsl.run(chain, runs=tmp_path)
    assert run.score == 1.0 == run.metrics()["episode_return_ma"][len(run.metrics()["frame"]) - 1]
    (short,) = rldsl.run(chain, frames=2, runs=tmp_path)
    assert np.isnan(short.score)
