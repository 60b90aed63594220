"""Segments written ahead of a checkpoint: it has them as they are, and does without them where they failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.store import load_checkpoint, save_checkpoint
from rldsl.store.ahead import AHEAD, SegmentsAhead
from rldsl.store.append_only_ring import SEGMENTS, AppendOnlyRing
from tests.store.test_append_only_ring import Ring

LARGE = 32
"""Segments, of 5 rows each."""


class LargeRing(Ring):
    def state(self) -> dict[str, AppendOnlyRing]:
        small = super().state()["ring"]
        return {"ring": AppendOnlyRing(small.first, small.last, small.lap, small.read, small.saved, LARGE)}

    def grow(self, count: int, ahead: SegmentsAhead) -> None:
        for _ in range(count):
            self.write(1)
            ahead.maybe_flush(self.state()["ring"])
            ahead.wait()


def inodes(folder: Path) -> dict[int, str]:
    return {path.stat().st_ino: path.name for path in folder.glob("*.safetensors")}


def test_a_checkpoint_has_what_was_written_ahead_of_it(tmp_path: Path) -> None:
    ring, ahead = LargeRing(), SegmentsAhead(tmp_path)
    ring.grow(23, ahead)
    early = inodes(tmp_path / AHEAD)
    assert sorted(early.values()) == ["0.safetensors", "10.safetensors", "15.safetensors", "5.safetensors"]
    checkpoint = save_checkpoint(tmp_path, 1, ring.state())
    assert early.keys() < inodes(checkpoint).keys()
    assert {inodes(checkpoint)[one] for one in inodes(checkpoint).keys() - early.keys()} == {
        "arrays.safetensors",
        "ring-20.safetensors",
    }
    ahead.clear()
    assert not (tmp_path / AHEAD).exists()
    ring.grow(6, ahead)
    assert list(inodes(tmp_path / AHEAD).values()) == ["20.safetensors"], "the others are in the checkpoint"
    ahead.close()


@pytest.mark.parametrize("looks", ["every", "rare"])
def test_all_rows_are_there_lap_after_lap(tmp_path: Path, looks: str) -> None:
    ring, ahead = LargeRing(), SegmentsAhead(tmp_path)
    for frame in range(12):
        if looks == "every":
            ring.grow(47, ahead)
        else:
            ring.write(46)
            ring.grow(1, ahead)
        save_checkpoint(tmp_path, frame, ring.state())
        ahead.clear()
        loaded = load_checkpoint(tmp_path)
        assert loaded is not None and loaded.damaged == [] and ring.holds(loaded.state["ring"])
    ahead.close()


def test_a_segment_is_what_it_was_when_it_was_finished(tmp_path: Path) -> None:
    """Though the ring may go round before the disk has it."""
    ring, ahead = LargeRing(), SegmentsAhead(tmp_path)
    ring.write(6)
    ahead.maybe_flush(ring.state()["ring"])
    ring.rows[:5] = 99
    ahead.wait()
    ring.rows[:5] = [[number] * 3 for number in range(5)]
    save_checkpoint(tmp_path, 1, ring.state())
    ahead.close()
    assert ring.holds(load_checkpoint(tmp_path).state["ring"])


def test_where_nothing_can_be_written_ahead_the_checkpoint_writes_all(tmp_path: Path) -> None:
    ring, ahead = LargeRing(), SegmentsAhead(tmp_path)
    (tmp_path / AHEAD).write_text("in the way")
    ring.grow(23, ahead)
    assert ahead.failed and not ring.saved
    save_checkpoint(tmp_path, 1, ring.state())
    assert ring.holds(load_checkpoint(tmp_path).state["ring"])
    (tmp_path / AHEAD).unlink()
    ahead.clear()
    ring.grow(10, ahead)
    assert not ahead.failed and inodes(tmp_path / AHEAD), "it is tried again after a checkpoint"
    ahead.close()


def test_what_is_lost_before_the_checkpoint_is_written_by_it(tmp_path: Path) -> None:
    ring, ahead = LargeRing(), SegmentsAhead(tmp_path)
    ring.grow(23, ahead)
    ahead.close()
    save_checkpoint(tmp_path, 1, ring.state())
    assert ring.holds(load_checkpoint(tmp_path).state["ring"])


def test_a_ring_that_was_saved_in_fewer_segments_is_written_anew(tmp_path: Path) -> None:
    small, ring = Ring(), LargeRing()
    small.write(83)
    save_checkpoint(tmp_path, 1, small.state())
    ring.write(97)
    ring.saved = small.saved
    save_checkpoint(tmp_path, 2, ring.state())
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None and loaded.frame == 2 and ring.holds(loaded.state["ring"])
    assert len(loaded.state["ring"].segments) == 20


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / AHEAD).mkdir()
    (tmp_path / AHEAD / "0.safetensors").write_text("half")
    SegmentsAhead(tmp_path).close()
    assert not (tmp_path / AHEAD).exists()


def test_a_small_ring_waits_for_its_checkpoint(tmp_path: Path) -> None:
    ring, ahead = Ring(), SegmentsAhead(tmp_path)
    ring.write(50)
    assert ring.state()["ring"].segments == SEGMENTS
    ahead.maybe_flush(ring.state()["ring"])
    ahead.close()
    assert not (tmp_path / AHEAD).exists() and not ring.saved
