"""One session of the random agent, in this process: its log points, its lives, its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rldsl import Classic, Random
from rldsl.spec.budget import Budget
from rldsl.spec.experiment import Trial
from rldsl.spec.session import Session
from rldsl.store.errors import AlreadyRunning
from rldsl.store.provenance import collect
from rldsl.store.session_dir import SessionDir
from rldsl.train.pack import Pack, open_directories
from tests.project import events, rows, work

ORIGIN = collect(["python", "exp.py"], Path())


def trial(frames: int = 1000, log_every: int = 100, num_envs: int = 2, checkpoint_every: int | None = None) -> Trial:
    budget = Budget(frames, log_every=log_every, checkpoint_every=checkpoint_every)
    return Trial(agent=Random(), env=Classic("CartPole-v1", num_envs=num_envs), budget=budget)


def pack(runs: Path, of: Trial, seeds: Sequence[int] = (0,)) -> Pack:
    sessions = [Session(experiment="x", trial=of, seed=seed) for seed in seeds]
    return Pack(sessions, open_directories(runs, sessions), ORIGIN)


def train(runs: Path, of: Trial, seeds: Sequence[int] = (0,), iterations: int | None = None) -> list[Path]:
    """Trains to the end, or as many iterations as are given; returns the directories."""
    made = pack(runs, of, seeds)
    left = iter(range(iterations or 10**9))
    outcome = made.run(lambda: None if iterations is None or next(left) < iterations - 1 else "enough")
    assert outcome == ("done" if iterations is None else "enough")
    return [directory.path for directory in made.directories]


def test_the_same_seed_gives_the_same_session(tmp_path: Path) -> None:
    (one,), (other,) = train(tmp_path / "a", trial()), train(tmp_path / "b", trial())
    assert work(one) == work(other)
    assert len(work(one)) == 10


def test_another_seed_gives_another_session(tmp_path: Path) -> None:
    (one,), (other,) = train(tmp_path, trial(), [0]), train(tmp_path, trial(), [1])
    assert work(one) != work(other)


@pytest.mark.parametrize("iterations", [1, 49, 50, 51, 333, 499])
def test_a_session_that_was_stopped_anywhere_goes_on_as_if_it_had_not(tmp_path: Path, iterations: int) -> None:
    (whole,) = train(tmp_path / "whole", trial())
    (parts,) = train(tmp_path / "parts", trial(), iterations=iterations)
    last = events(parts)[-1]
    assert (last["event"], last["frame"], last["reason"]) == ("stopped", 2 * iterations, "enough")
    assert last["metrics"]["rows"] == len(rows(parts))
    train(tmp_path / "parts", trial())
    assert work(parts) == work(whole)
    assert SessionDir(parts).read_state().attempts == 2


def test_a_session_that_died_between_two_checkpoints_repeats_what_was_lost(tmp_path: Path) -> None:
    (whole,) = train(tmp_path / "whole", trial())
    doomed = pack(tmp_path / "parts", trial(checkpoint_every=300))

    def die() -> None:
        if doomed.world.frame == 550:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        doomed.run(die)
    parts = doomed.directories[0].path
    assert events(parts)[-1]["event"] == "failed"
    assert [int(row["frame"]) for row in rows(parts)] == [100, 200, 300, 400, 500]
    train(tmp_path / "parts", trial(checkpoint_every=300))
    assert [one["frame"] for one in events(parts) if one["event"] == "started"] == [0, 300]
    assert work(parts) == work(whole)


def test_a_session_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    together = train(tmp_path / "together", trial(), [3, 1, 4])
    for path, seed in zip(together, [3, 1, 4], strict=True):
        (alone,) = train(tmp_path / "alone", trial(), [seed])
        assert work(path) == work(alone)


def test_log_points_come_as_soon_as_they_are_due_and_at_the_end(tmp_path: Path) -> None:
    (path,) = train(tmp_path, trial(frames=1001, log_every=250, num_envs=3))
    assert [int(row["frame"]) for row in rows(path)] == [252, 501, 750, 1002]


def test_a_log_interval_of_its_own_is_a_four_hundredth_of_the_budget() -> None:
    assert Budget(1e6).log_interval == 2500
    assert Budget(100).log_interval == 1


def test_a_session_that_is_done_says_so(tmp_path: Path) -> None:
    (path,) = train(tmp_path, trial())
    state = SessionDir(path).read_state()
    assert (state.state, state.frame, state.attempts) == ("done", 1000, 1)


def test_two_processes_cannot_have_one_session(tmp_path: Path) -> None:
    made = pack(tmp_path, trial())
    with made.directories[0].claim(), pytest.raises(AlreadyRunning, match="is already running on"):
        made.run(lambda: None)
    assert [one["event"] for one in events(made.directories[0].path)] == ["created"]
