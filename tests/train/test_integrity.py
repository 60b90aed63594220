"""Damaged files of a session: it goes on from what is trustworthy and says so, or it says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rldsl.report.run_result import session_result
from rldsl.report.status import run_states
from rldsl.store.checkpoint import load_checkpoint
from rldsl.store.errors import CheckpointDamaged
from rldsl.store.metrics import MetricsWriter, read_metrics
from rldsl.store.session_dir import SessionDir
from rldsl.train.pack import Pack
from tests.project import events, work
from tests.train.packs import CARTPOLE, PPO_SMALL, session, train

ONE = session(PPO_SMALL, frames=640, checkpoint_every=128)


def flip(path: Path, at: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= bit
    path.write_bytes(data)


def at_frame(frame: int) -> Callable[[Pack], str | None]:
    return lambda pack: "enough" if pack.frame >= frame else None


def extra_rows(path: Path) -> None:
    with path.open("a") as file:
        file.write(path.read_text().splitlines()[-1].replace("384", "448") + "\n")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated within a row": lambda path: path.write_bytes(path.read_bytes()[:-10]),
    "truncated at a row": lambda path: path.write_text("\n".join(path.read_text().splitlines()[:-2]) + "\n"),
    "flipped in a number": lambda path: flip(path, path.read_bytes().index(b"\n128,") + 2),
    "flipped in the header": lambda path: flip(path, 3),
    "emptied": lambda path: path.write_bytes(b""),
    "removed": lambda path: path.unlink(),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("whole"), ONE).directories[0].path


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_metrics_are_restored_from_the_checkpoint(name: str, tmp_path: Path, whole: Path) -> None:
    directory = train(tmp_path, ONE, stop=at_frame(384)).directories[0]
    DAMAGE[name](directory.metrics)
    train(tmp_path, ONE)
    assert work(directory.path) == work(whole)
    (told,) = [one for one in events(directory.path) if one["event"] == "fallback"]
    assert "metrics.csv was" in told["reason"] and "frame 384" in told["reason"]
    assert told["reason"] in directory.read_state().note
    assert session_result(directory).fallbacks == (told["reason"],)
    assert session_result(directory).damage == ()


def test_rows_behind_the_checkpoint_are_computed_again(tmp_path: Path, whole: Path) -> None:
    """They cannot be verified; a killed process leaves such rows, so it is no damage."""
    directory = train(tmp_path, ONE, stop=at_frame(384)).directories[0]
    extra_rows(directory.metrics)
    train(tmp_path, ONE)
    assert work(directory.path) == work(whole)
    assert directory.read_state().fallbacks == ()


def test_a_session_without_a_checkpoint_begins_with_no_rows(tmp_path: Path, whole: Path) -> None:
    directory = train(tmp_path, ONE, stop=at_frame(64)).directories[0]
    for path in directory.checkpoints.iterdir():
        path.rename(tmp_path / path.name)
    train(tmp_path, ONE)
    assert work(directory.path) == work(whole)


def test_a_checkpoint_of_an_earlier_version_has_no_copy(tmp_path: Path, whole: Path, monkeypatch) -> None:
    state = Pack._state
    with monkeypatch.context() as patch:
        patch.setattr(Pack, "_state", lambda pack, member: {**state(pack, member), "metrics": None})
        directory = train(tmp_path, ONE, stop=at_frame(384)).directories[0]
    extra_rows(directory.metrics)
    train(tmp_path, ONE)
    assert work(directory.path) == work(whole)


def test_a_damaged_checkpoint_is_told(tmp_path: Path, whole: Path) -> None:
    directory = train(tmp_path, ONE, stop=at_frame(384)).directories[0]
    flip(directory.checkpoints / "000000000384" / "arrays.safetensors", -5)
    train(tmp_path, ONE)
    assert work(directory.path) == work(whole)
    (reason,) = directory.read_state().fallbacks
    assert "000000000384 is damaged" in reason and reason.endswith("resumed from frame 256")
    (state,) = run_states(tmp_path)
    assert reason in state.note and state.damage is None


def test_the_damaged_checkpoint_of_one_member_is_told_of_that_member(tmp_path: Path) -> None:
    both = [session(PPO_SMALL, CARTPOLE, seed, frames=640, checkpoint_every=128) for seed in range(2)]
    expected = train(tmp_path / "whole", *both).directories
    directories = train(tmp_path / "broken", *both, stop=at_frame(384)).directories
    flip(directories[1].checkpoints / "000000000384" / "state.json", 20)
    train(tmp_path / "broken", *both)
    assert [len(one.read_state().fallbacks) for one in directories] == [0, 1]
    assert [work(one.path) for one in directories] == [work(one.path) for one in expected]


def test_a_damaged_best_policy_is_set_aside(tmp_path: Path, whole: Path) -> None:
    directory = train(tmp_path, ONE, stop=at_frame(384)).directories[0]
    flip(directory.checkpoints / "best" / "arrays.safetensors", -5)
    train(tmp_path, ONE)
    assert work(directory.path) == work(whole)
    (reason,) = directory.read_state().fallbacks
    assert "best" in reason and "frame 384" in reason
    assert (directory.checkpoints / "best.damaged").is_dir()
    best = load_checkpoint(directory.checkpoints, tag="best")
    assert best and best.frame >= 384


def test_where_every_checkpoint_is_damaged_the_session_fails_with_a_sentence(tmp_path: Path) -> None:
    directory = train(tmp_path, ONE, stop=at_frame(384)).directories[0]
    for path in directory.checkpoints.glob("0*"):
        flip(path / "state.json", 20)
    before = directory.metrics.read_bytes()
    with pytest.raises(CheckpointDamaged, match=r"no checkpoint in .* can be loaded"):
        train(tmp_path, ONE)
    assert directory.metrics.read_bytes() == before
    assert directory.read_state().state == "failed"


@pytest.mark.parametrize("name", DAMAGE)
def test_metrics_that_change_after_the_end_are_noticed(name: str, tmp_path: Path) -> None:
    directory = train(tmp_path, ONE).directories[0]
    assert [state.damage for state in run_states(tmp_path)] == [None]
    DAMAGE[name](directory.metrics)
    (state,) = run_states(tmp_path)
    assert state.damage and "metrics.csv" in state.note
    assert any(state.damage in one for one in session_result(directory).damage)


def test_the_end_of_a_session_records_its_metrics(tmp_path: Path) -> None:
    directory = train(tmp_path, ONE).directories[0]
    end = events(directory.path)[-1]
    saved = load_checkpoint(directory.checkpoints)
    assert saved and end["metrics"] == {name: saved.state["metrics"][name] for name in ("rows", "sha256")}
    assert end["metrics"]["rows"] == len(read_metrics(directory.metrics)["frame"])
    np.testing.assert_array_equal(saved.state["metrics"]["copy"], np.fromfile(directory.metrics, np.uint8))


def test_a_directory_without_digests_is_read_as_before(tmp_path: Path) -> None:
    directory = SessionDir.create(tmp_path, ONE.directory, ONE.record(), "")
    MetricsWriter(directory.metrics, ("frame", "episode_return")).write({"frame": 1, "episode_return": 2.0})
    (directory.path / "journal.jsonl").write_text('{"time": 1.0, "event": "done", "frame": 640}\n')
    (state,) = run_states(tmp_path)
    assert (state.state, state.damage, state.note) == ("done", None, "")
