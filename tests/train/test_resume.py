"""A session that was killed or stopped anywhere and resumed has the curve of one that was not, bit for bit."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from rldsl import PPO, SIL, Gym
from rldsl.memory import replay
from rldsl.spec.session import Session
from rldsl.store import ahead
from rldsl.store.append_only_ring import Segment
from rldsl.store.checkpoint import checkpoint_frames, load_checkpoint
from rldsl.store.states import split_state
from rldsl.train.pack import Pack
from tests.project import events, rows, until, work
from tests.train.attempts import Attempts, moments
from tests.train.packs import CARTPOLE, CASES, NORMALIZED, PENDULUM, PPO_SMALL, curve, session, train

FRAMES = {"a2c_recurrent": 256, "ppo_recurrent": 256, "random": 32_768}
POINTS = 16
STOPPED, FAILED = 3, 1


def small(name: str, seed: int = 0) -> Session:
    agent, env = CASES[name]
    frames = FRAMES.get(name, 1024)
    return session(agent, env, seed, frames=frames, log_every=frames // POINTS, checkpoint_every=frames // 8)


@pytest.mark.parametrize("name", CASES)
def test_a_session_that_is_killed_three_times_has_the_same_curve(name: str, tmp_path: Path) -> None:
    whole, broken = Attempts(tmp_path / "whole", small(name)), Attempts(tmp_path / "broken", small(name))
    assert whole.run_to_end() == 0
    for points, later in moments(name, POINTS):
        broken.kill(points, later)
    assert broken.run_to_end() == 0
    assert len(work(whole.paths[0])) == POINTS
    assert work(broken.paths[0]) == work(whole.paths[0])
    told = [one["event"] for one in events(broken.paths[0])]
    assert told[-1] == "done"
    assert any(one["frame"] > 0 for one in events(broken.paths[0]) if one["event"] == "started"), "nothing was resumed"
    assert_same_checkpoints(broken.paths[0], whole.paths[0])


def assert_same_checkpoints(ours: Path, expected: Path) -> None:
    """The last states are equal in every number but those of the clock, and so are the best ones."""
    for tag in (None, "best"):
        loaded = [load_checkpoint(path / "checkpoints", tag=tag) for path in (ours, expected)]
        assert loaded[0] and loaded[1] and loaded[0].frame == loaded[1].frame
        states = [{name: part for name, part in one.state.items() if name != "metrics"} for one in loaded if one]
        (tree, arrays), (its_tree, its_arrays) = map(split_state, states)
        assert tree == its_tree
        assert arrays.keys() == its_arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(array, its_arrays[key], err_msg=key)


@pytest.mark.parametrize("name", CASES)
def test_what_is_restored_is_saved_again_as_it_was(name: str, tmp_path: Path) -> None:
    """Even where nothing was learned in between: a session may be killed behind its last checkpoint."""
    train(tmp_path, small(name))
    saved = load_checkpoint(tmp_path / small(name).directory / "checkpoints")
    assert saved is not None
    fresh = train(tmp_path / "fresh", small(name), stop=lambda pack: "now")
    fresh.agent.restore(0, saved.state["agent"])
    again = split_state(fresh.agent.state(0), {})[1]
    for key, array in split_state(saved.state["agent"], {})[1].items():
        if not key.startswith("replay/steps/"):  # they grow, and are saved by themselves
            np.testing.assert_array_equal(again[key], array, err_msg=key)
            assert again[key].dtype == array.dtype, key


@pytest.mark.parametrize("name", ["ppo_sil", "sarsa_epsilon"])
def test_a_pack_of_two_that_is_killed_has_the_same_curves(name: str, tmp_path: Path) -> None:
    both = [small(name, seed) for seed in range(2)]
    whole, broken = Attempts(tmp_path / "whole", *both), Attempts(tmp_path / "broken", *both)
    assert whole.run_to_end() == 0
    for points, later in moments("two", POINTS):
        broken.kill(points, later)
    assert broken.run_to_end() == 0
    for ours, expected in zip(broken.paths, whole.paths, strict=True):
        assert work(ours) == work(expected)


def test_the_same_seed_twice_is_identical_and_another_is_not(tmp_path: Path) -> None:
    first, second = (train(tmp_path / name, small("ppo")).directories[0].path for name in ("first", "second"))
    other = train(tmp_path / "first", small("ppo", seed=1)).directories[0].path
    assert work(first) == work(second)
    assert work(first) != work(other)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2])
def test_a_signal_stops_cleanly_and_nothing_is_done_twice(number: signal.Signals, tmp_path: Path) -> None:
    agent, env = CASES["ppo"]
    attempts = Attempts(tmp_path / "runs", *(session(agent, env, seed, frames=20_000) for seed in range(2)))
    process = attempts.start()
    until(lambda: len(rows(attempts.paths[1])) >= 3)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(30)
    assert process.exitcode == STOPPED
    for path in attempts.paths:
        last = events(path)[-1]
        assert (last["event"], last["reason"]) == ("stopped", f"asked to stop ({number.name})")
        assert checkpoint_frames(path / "checkpoints")[0] == last["frame"] > 0
        assert int(rows(path)[-1]["frame"]) <= last["frame"]


def test_a_pack_with_a_member_that_failed_says_so_when_it_ends(tmp_path: Path) -> None:
    absurd = PPO_SMALL.with_(lr=3e38, max_grad_norm=1e30)
    both = Attempts(tmp_path / "runs", session(PPO_SMALL), session(absurd))
    assert both.run_to_end() == FAILED
    assert [events(path)[-1]["event"] for path in both.paths] == ["done", "failed"]
    assert Attempts(tmp_path / "alone", session(absurd)).run_to_end() == FAILED


def test_the_journal_records_how_a_session_computes(tmp_path: Path) -> None:
    path = train(tmp_path, session(PPO_SMALL)).directories[0].path
    started = next(one for one in events(path) if one["event"] == "started")
    assert (started["members"], started["compiled"], started["device"]) == (1, False, "cpu")


def stopped_at(frame: int) -> Callable[[Pack], str | None]:
    return lambda pack: "enough" if pack.frame >= frame else None


def test_a_session_that_was_stopped_has_the_same_curve(tmp_path: Path) -> None:
    one = session(NORMALIZED, PENDULUM, frames=1024)
    whole = train(tmp_path / "whole", one)
    for frame in (320, 640, 896):
        pack = train(tmp_path / "broken", one, stop=stopped_at(frame))
        assert events(pack.directories[0].path)[-1]["reason"] == "enough"
        assert pack.directories[0].read_state().frame == frame
    pack = train(tmp_path / "broken", one)
    assert work(pack.directories[0].path) == work(whole.directories[0].path)


def test_a_large_replay_is_saved_ahead_of_checkpoints_and_goes_on_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = small("dqn_prioritized")
    whole = train(tmp_path / "whole", one)
    monkeypatch.setattr(replay, "SEGMENT_BYTES", 64)
    early: list[int] = []
    write = ahead.write_segment

    def counted(path: Path, first: int, last: int, arrays: Mapping[str, np.ndarray]) -> Segment:
        early.append(first)
        return write(path, first, last, arrays)

    monkeypatch.setattr(ahead, "write_segment", counted)
    for frame in (320, 640, 896):
        train(tmp_path / "broken", one, stop=stopped_at(frame))
    pack = train(tmp_path / "broken", one)
    assert len(early) > 3
    assert work(pack.directories[0].path) == work(whole.directories[0].path)
    assert not (pack.directories[0].checkpoints / ahead.AHEAD).exists()


def test_killed_while_a_large_replay_is_saved_ahead_of_a_checkpoint(tmp_path: Path) -> None:
    whole = Attempts(tmp_path / "whole", small("dqn"))
    broken = Attempts(tmp_path / "broken", small("dqn"), segment_bytes=64)
    assert whole.run_to_end() == 0
    for points, later in moments("large", POINTS):
        broken.kill(points, later)
    assert broken.run_to_end() == 0
    assert work(broken.paths[0]) == work(whole.paths[0])
    segments = list((broken.paths[0] / "checkpoints").glob("0*/agent.replay.steps-*"))
    assert len(segments) > len(list((whole.paths[0] / "checkpoints").glob("0*/agent.replay.steps-*"))) > 0


@pytest.mark.parametrize("name", ["ppo", "ppo_sil", "sarsa_epsilon", "a2c_n_step"])
def test_a_member_of_a_pack_may_go_on_alone_with_the_same_curve_up_to_rounding(name: str, tmp_path: Path) -> None:
    agent, env = CASES[name]
    both = [session(agent, env, seed) for seed in range(2)]
    whole = train(tmp_path / "whole", *both)
    train(tmp_path / "broken", *both, stop=stopped_at(256))
    for member, one in enumerate(both):
        alone = train(tmp_path / "broken", one)
        ours, expected = (curve(path) for path in (alone.directories[0].path, whole.directories[member].path))
        for column in expected:
            np.testing.assert_allclose(ours[column], expected[column], rtol=5e-3, atol=1e-4, err_msg=column)


def test_sessions_that_were_alone_may_go_on_in_a_pack(tmp_path: Path) -> None:
    both = [session(PPO_SMALL, CARTPOLE, seed) for seed in range(2)]
    whole = train(tmp_path / "whole", *both)
    for one in both:
        train(tmp_path / "broken", one, stop=stopped_at(256))
    together = train(tmp_path / "broken", *both)
    for ours, expected in zip(together.directories, whole.directories, strict=True):
        for column, values in curve(expected.path).items():
            np.testing.assert_allclose(curve(ours.path)[column], values, rtol=5e-3, atol=1e-4, err_msg=column)


def test_a_pack_that_was_killed_between_two_checkpoints_goes_on_from_the_last_that_all_have(tmp_path: Path) -> None:
    both = [session(PPO_SMALL, CARTPOLE, seed, checkpoint_every=64) for seed in range(2)]
    whole = train(tmp_path / "whole", *both)
    stopped = train(tmp_path / "broken", *both, stop=stopped_at(320)).directories
    newest = stopped[1].checkpoints / "000000000320"
    assert newest.is_dir()
    shutil.rmtree(newest)
    again = train(tmp_path / "broken", *both)
    for ours, expected in zip(again.directories, whole.directories, strict=True):
        assert work(ours.path) == work(expected.path)


@pytest.mark.parametrize("name", ["sarsa_epsilon", "ppo_sil", "a2c_recurrent"])
def test_where_an_environment_cannot_be_saved_episodes_begin_anew(name: str, tmp_path: Path) -> None:
    one = session(CASES[name][0], Gym("CartPole-v1", num_envs=2), frames=384, log_every=32)
    before = train(tmp_path, one, stop=stopped_at(192))
    first = before.world.observation.copy()
    seen: list[np.ndarray] = []

    def look(pack: Pack) -> None:
        seen.append(pack.agent.rollout.observation[0, 0].copy())

    path = train(tmp_path, one, stop=look).directories[0].path
    assert [int(row["frame"]) for row in rows(path)] == list(range(32, 385, 32))
    assert np.abs(seen[0]).max() <= 0.05, "an episode of CartPole begins within 0.05 of zero"
    assert not np.array_equal(seen[0], first)


def test_a_session_that_is_done_stays_as_it_is(tmp_path: Path) -> None:
    one = session(PPO_SMALL)
    path = train(tmp_path, one).directories[0].path
    before = (path / "metrics.csv").read_bytes()
    train(tmp_path, one)
    assert (path / "metrics.csv").read_bytes() == before


def test_an_open_episode_of_self_imitation_survives(tmp_path: Path) -> None:
    one = session(PPO(rollout=16, minibatch=16, sil=SIL(batch=16)))
    pack = train(tmp_path, one, stop=stopped_at(64))
    open_before = [len(steps) for steps in pack.agent.imitation.episodes]
    assert any(open_before)
    seen: list[list[int]] = []
    lengths = lambda again: [len(steps) for steps in again.agent.imitation.episodes]  # noqa: E731
    train(tmp_path, one, stop=lambda again: seen.append(lengths(again)) or "enough")
    grown = [later == earlier + 16 or later < 16 for earlier, later in zip(open_before, seen[0], strict=True)]
    assert all(grown)
