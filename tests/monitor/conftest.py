"""A run directory with sessions in every state, one of them held by a live process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rldsl import A2C, PPO, uniform
from rldsl.store.session_dir import SessionDir
from tests.monitor.sample_sessions import (
    TrainingProcess,
    cartpole,
    finished_trials,
    make,
    make_done,
    make_failed,
    make_search,
    make_stopped,
    sessions_of,
    training,
)


@dataclass(frozen=True)
class SampleRuns:
    """A run directory and some of its sessions."""

    runs: Path
    alive: SessionDir
    failed: SessionDir
    stopped: SessionDir
    done: list[SessionDir]
    new: SessionDir
    process: TrainingProcess  # of `alive`

    def path(self, directory: SessionDir) -> str:
        return str(directory.path.relative_to(self.runs))


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleRuns]:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # faster; durability does not matter here
    runs = tmp_path / "runs"
    ppo, a2c = sessions_of(cartpole()), sessions_of(cartpole().agent(A2C()).named("cartpole/a2c"))
    low, high = (cartpole().agent(PPO(clip=clip)).named("cartpole/clips") for clip in (0.1, 0.3))
    search = cartpole().search(gamma=uniform(0.9, 0.99)).random(trials=3)
    clips = zip([*sessions_of(low), *sessions_of(high)], (300, 340, 460, 480), strict=True)
    done = [make_done(runs, one, best) for one, best in clips]
    for number, one in enumerate(sessions_of(search)):
        make_done(runs, one, best=100.0 + 10 * number)
    make_search(runs, search, finished_trials(search, (105.0, 125.0, 145.0)))
    failed = make_failed(runs, a2c[0], "diverged: its parameters are not finite any more")
    failed.log.write_text("".join(f"line {number}\n" for number in range(300)) + "Traceback: it broke\n")
    with training(runs, ppo[0]) as process:
        (alive,) = process.directories
        yield SampleRuns(runs, alive, failed, make_stopped(runs, ppo[1]), done, make(runs, a2c[1]), process)
