"""A session that is paused at a frame and resumed has the curve of one that was not, bit for bit."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from rldsl.spec.session import Session
from rldsl.store.checkpoint import checkpoint_frames
from tests.project import events, rows, until, work
from tests.train.attempts import Attempts
from tests.train.packs import CASES, PPO_SMALL, curve, session, three_apart, train

PAUSED = ["ppo", "dqn", "sac"]
STOPPED, FAILED = 3, 1


def members(name: str, frames: int = 512) -> list[Session]:
    """Three sessions that differ wherever members of a pack may, with schedules over the whole budget among them."""
    agent, env = CASES[name]
    return [session(one, env, seed, frames=frames) for seed, one in enumerate(three_apart(agent))]


@pytest.mark.parametrize("name", PAUSED)
def test_a_pack_that_is_paused_twice_has_the_same_curves(name: str, tmp_path: Path) -> None:
    sessions = members(name)
    whole = train(tmp_path / "whole", *sessions)
    for frame in (128, 320):
        paused = train(tmp_path / "paused", *sessions, until=frame)
        for directory in paused.directories:
            state = directory.read_state()
            assert (state.state, state.frame) == ("paused", frame)
            assert checkpoint_frames(directory.checkpoints)[0] == frame
            assert int(rows(directory.path)[-1]["frame"]) == frame
    resumed = train(tmp_path / "paused", *sessions)
    for ours, expected in zip(resumed.directories, whole.directories, strict=True):
        assert ours.state() == "done"
        assert work(ours.path) == work(expected.path)


@pytest.mark.parametrize("name", PAUSED)
def test_members_that_are_promoted_into_another_pack_have_the_same_curves(name: str, tmp_path: Path) -> None:
    """Two packs pause; one member of each goes on in a third pack, of the same size, with another neighbour."""
    agent, env = CASES[name]
    first, second, third, fourth = (session(agent, env, seed) for seed in range(4))
    whole = [train(tmp_path / "whole", *pack) for pack in ((first, second), (third, fourth))]
    for pack in ((first, second), (third, fourth)):
        train(tmp_path / "paused", *pack, until=256)
    promoted = train(tmp_path / "paused", fourth, first)
    assert work(promoted.directories[0].path) == work(whole[1].directories[1].path)
    assert work(promoted.directories[1].path) == work(whole[0].directories[0].path)


@pytest.mark.parametrize("name", PAUSED)
def test_a_member_that_is_promoted_alone_has_the_same_curve_up_to_rounding(name: str, tmp_path: Path) -> None:
    sessions = members(name)
    whole = train(tmp_path / "whole", *sessions)
    train(tmp_path / "paused", *sessions, until=256)
    alone = train(tmp_path / "paused", sessions[1])
    ours, expected = curve(alone.directories[0].path), curve(whole.directories[1].path)
    for column in expected:
        np.testing.assert_allclose(ours[column], expected[column], rtol=5e-3, atol=1e-4, err_msg=column)


def test_a_pause_between_two_iterations_is_after_the_next_one(tmp_path: Path) -> None:
    """An iteration is never cut: the frame at which a session pauses is the first that an iteration ends with."""
    directory = train(tmp_path, session(PPO_SMALL), until=100).directories[0]
    assert directory.read_state().frame == 128  # two environments, rollouts of 32 steps


def test_the_worker_pauses_and_a_frame_that_has_passed_ends_it_at_once(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path / "runs", *members("ppo")[:2])
    assert attempts.run_to_end("--until", "192") == 0
    before = [(path / "metrics.csv").read_bytes() for path in attempts.paths]
    assert attempts.run_to_end("--until", "128") == 0
    assert [(path / "metrics.csv").read_bytes() for path in attempts.paths] == before
    for path in attempts.paths:
        told = [(one["event"], one["frame"]) for one in events(path) if "frame" in one]
        assert told[-2:] == [("checkpoint", 192), ("paused", 192)]
    assert attempts.run_to_end("--until", "9999") == 0
    assert attempts.run_to_end("--until", "192") == 0, "a session that is done stays done"
    assert [events(path)[-1]["event"] for path in attempts.paths] == ["done", "done"]


def test_a_worker_that_is_stopped_before_the_pause_is_not_paused(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path / "runs", session(PPO_SMALL, frames=20_000))
    process = attempts.start("--until", "19000")
    until(lambda: rows(attempts.paths[0]))
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    process.join(30)
    assert process.exitcode == STOPPED
    assert events(attempts.paths[0])[-1]["event"] == "stopped"


def test_a_pack_with_a_member_that_failed_says_so_when_it_pauses(tmp_path: Path) -> None:
    absurd = PPO_SMALL.with_(lr=3e38, max_grad_norm=1e30)
    both = Attempts(tmp_path / "runs", session(PPO_SMALL), session(absurd))
    assert both.run_to_end("--until", "256") == FAILED
    assert [events(path)[-1]["event"] for path in both.paths] == ["paused", "failed"]
