"""Checkpoints that are written to the disk of a node first: the run directory has all that its journal says."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rldsl import DQN
from rldsl.store import scratch
from rldsl.store.checkpoint import load_checkpoint, save_checkpoint
from rldsl.store.errors import CannotWrite, ClaimLost
from rldsl.train.pack import Pack
from tests.project import events
from tests.store.test_append_only_ring import Ring
from tests.train.packs import CASES, PPO_SMALL, curve, session, train


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The disk of a node: another filesystem than that of the run directory, if there is one."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="rldsl-test-", dir=memory if memory.is_dir() else None))
    monkeypatch.setenv(scratch.VARIABLE, str(path))
    yield path
    shutil.rmtree(path)


def checkpoints(session: Path) -> dict[str, dict[str, bytes]]:
    """The arrays of every checkpoint, without the times of metrics."""
    return {
        path.name: {file.name: file.read_bytes() for file in path.glob("*.safetensors")}
        for path in (session / "checkpoints").iterdir()
    }


def journalled(session: Path) -> list[int]:
    return [one["frame"] for one in events(session) if one["event"] == "checkpoint"]


def test_the_run_directory_is_as_it_would_be_without(
    tmp_path: Path, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, env = CASES["dqn"]
    assert isinstance(agent, DQN)
    one = session(agent.with_(buffer=512), env, checkpoint_every=128)

    def stop(pack: Pack) -> str | None:
        return "enough" if pack.frame == 192 else None

    train(tmp_path / "ours", one, stop=stop)
    shutil.rmtree(node)  # the next life may be on another node
    ours = train(tmp_path / "ours", one).directories[0].path
    assert list(node.iterdir()), "it was used"
    monkeypatch.delenv(scratch.VARIABLE)
    whole = train(tmp_path / "whole", one).directories[0].path
    for name, column in curve(whole).items():
        np.testing.assert_array_equal(curve(ours)[name], column)
    found, expected = checkpoints(ours), checkpoints(whole)
    assert len(found) == len(expected) == 3
    segments = [file for file in expected["000000000512"] if not file.startswith("arrays")]
    assert len(segments) > 4
    assert {file: found["000000000512"][file] for file in segments} == {
        file: expected["000000000512"][file] for file in segments
    }
    assert found["best"] == expected["best"]
    assert journalled(ours)[-1] == 512 and not list(ours.glob("checkpoints/.*"))
    linked = [file for file in segments if (ours / "checkpoints" / "000000000512" / file).stat().st_nlink > 1]
    assert len(linked) > len(segments) // 2, "segments that are there already are not copied again"


def test_training_goes_on_meanwhile_and_a_checkpoint_counts_when_it_is_there(
    tmp_path: Path, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, copy = threading.Event(), scratch.copy_checkpoint
    monkeypatch.setattr(scratch, "copy_checkpoint", lambda *given: (slow.wait(60), copy(*given))[1])
    said: dict[int, list[int]] = {}

    def look(pack: Pack) -> str | None:
        said[pack.frame] = journalled(pack.directories[0].path)
        if pack.frame == 256:
            slow.set()
        return None

    path = train(tmp_path, session(PPO_SMALL, frames=384, checkpoint_every=128), stop=look).directories[0].path
    assert said[192] == said[256] == [], "it trained on while the checkpoint of frame 128 was copied"
    assert journalled(path) == [128, 256, 320, 384]


def test_what_cannot_be_copied_is_an_error_and_nothing_is_acknowledged(tmp_path: Path, node: Path) -> None:
    one = session(PPO_SMALL)
    directory = train(tmp_path, one, stop=lambda pack: "enough").directories[0]
    shutil.rmtree(directory.checkpoints)
    directory.checkpoints.touch()
    with pytest.raises(CannotWrite, match="checkpoints"):
        train(tmp_path, one)
    assert events(directory.path)[-1]["event"] == "failed" and len(journalled(directory.path)) == 1


def test_a_copy_is_complete_or_not_there(tmp_path: Path) -> None:
    ring = Ring()
    ring.write(100)
    source, target = tmp_path / "node", tmp_path / "runs"
    first = save_checkpoint(source, 1, ring.state())
    scratch.copy_checkpoint(first, target)
    ring.write(20)
    second = save_checkpoint(source, 2, ring.state())

    def lost() -> None:
        raise ClaimLost("another process has it")

    with pytest.raises(ClaimLost):
        scratch.copy_checkpoint(second, target, lost)
    assert [path.name for path in target.iterdir()] == [first.name]
    scratch.copy_checkpoint(second, target)
    loaded = load_checkpoint(target)
    assert loaded and loaded.frame == 2 and ring.holds(loaded.state["ring"]) and not loaded.damaged
