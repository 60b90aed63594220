"""Rows that grow: every checkpoint gives back all of them, and writes only what the one before it has not."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldsl.store import CheckpointDamaged, CheckpointRefused, DiskFull, load_checkpoint, save_checkpoint
from rldsl.store.append_only_ring import AppendOnlyRing, RingSnapshot, Saved


class Ring:
    """Row number n holds n."""

    def __init__(self, lap: int = 160) -> None:
        self.rows = np.full((lap, 3), -1)
        self.written, self.saved = 0, Saved()

    def write(self, count: int) -> None:
        for number in range(self.written, self.written + count):
            self.rows[number % len(self.rows)] = number
        self.written += count

    def state(self) -> dict[str, AppendOnlyRing]:
        return {"ring": AppendOnlyRing(self._first, self.written, len(self.rows), self._read, self.saved)}

    @property
    def _first(self) -> int:
        return max(self.written - len(self.rows), 0)

    def _read(self, first: int, last: int) -> dict[str, np.ndarray]:
        begin = first % len(self.rows)
        assert begin + last - first <= len(self.rows)
        return {"rows": self.rows[begin : begin + last - first]}

    def holds(self, grown: RingSnapshot) -> bool:
        """Whether all rows from the oldest on are there, in order; older ones may be."""
        numbers = [number for first, arrays in grown for number in _numbers(first, arrays["rows"])]
        return numbers[-(self.written - self._first) :] == list(range(self._first, self.written))


def _numbers(first: int, rows: np.ndarray) -> list[int]:
    assert (rows == rows[:, :1]).all() and rows[0, 0] == first
    return rows[:, 0].tolist()


def new_files(checkpoint: Path) -> list[str]:
    """The segments that no other checkpoint has."""
    return sorted(path.name for path in checkpoint.glob("ring-*") if path.stat().st_nlink == 1)


@settings(deadline=None, max_examples=8)
@given(st.integers(1, 40), st.lists(st.integers(1, 100), min_size=1, max_size=4))
def test_every_checkpoint_has_all_rows(tmp_path_factory: pytest.TempPathFactory, lap: int, counts: list[int]) -> None:
    directory, ring = tmp_path_factory.mktemp("checkpoints"), Ring(lap)
    for frame, count in enumerate(counts):
        ring.write(count)
        save_checkpoint(directory, frame, ring.state())
        loaded = load_checkpoint(directory)
        assert loaded.damaged == [] and ring.holds(loaded.state["ring"])
        if frame % 2:
            ring.saved = loaded.state["ring"].saved  # as after a resume


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    ring = Ring()  # 16 segments of 10
    ring.write(47)
    assert new_files(save_checkpoint(tmp_path, 1, ring.state())) == [
        f"ring-{row}.safetensors" for row in (0, 10, 20, 30, 40)
    ]
    ring.write(6)
    assert new_files(save_checkpoint(tmp_path, 2, ring.state())) == ["ring-40.safetensors", "ring-50.safetensors"]
    ring.saved = load_checkpoint(tmp_path).state["ring"].saved
    ring.write(1)
    third = save_checkpoint(tmp_path, 3, ring.state())
    assert new_files(third) == ["ring-50.safetensors"]
    assert len(list(third.glob("ring-*"))) == 6


def test_what_no_checkpoint_needs_is_gone(tmp_path: Path) -> None:
    ring, files = Ring(), set()
    for frame in range(40):
        ring.write(25)
        save_checkpoint(tmp_path, frame, ring.state())
        files = {path.stat().st_ino for path in tmp_path.rglob("ring-*")}
    assert len(files) <= 16 + 1 + 2 * 4  # a lap, the segment that is half forgotten, and what two checkpoints rewrote


def test_falls_back_when_a_new_segment_is_damaged(tmp_path: Path) -> None:
    ring = Ring()
    for frame, count in ((1, 25), (2, 10)):
        ring.write(count)
        path = save_checkpoint(tmp_path, frame, ring.state())
    name = new_files(path)[0]
    data = bytearray((path / name).read_bytes())
    data[-1] ^= 1
    (path / name).write_bytes(data)
    loaded = load_checkpoint(tmp_path)
    assert loaded.frame == 1 and name in loaded.damaged[0]
    for segment in (tmp_path / "000000000001").glob("ring-*"):
        segment.unlink()
    with pytest.raises(CheckpointDamaged, match="no such file"):
        load_checkpoint(tmp_path)


def test_a_filesystem_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    ring = Ring()
    for frame in (1, 2, 3):
        ring.write(30)
        save_checkpoint(tmp_path, frame, ring.state())
    assert ring.holds(load_checkpoint(tmp_path).state["ring"])


def test_a_segment_that_somebody_removed_is_written_again(tmp_path: Path) -> None:
    ring = Ring()
    ring.write(30)
    path = save_checkpoint(tmp_path, 1, ring.state())
    (path / "ring-10.safetensors").unlink()
    ring.write(1)
    save_checkpoint(tmp_path, 2, ring.state())
    assert ring.holds(load_checkpoint(tmp_path).state["ring"])


def test_a_tagged_checkpoint_refuses_what_grows(tmp_path: Path) -> None:
    with pytest.raises(CheckpointRefused, match="cannot hold ring, which is a AppendOnlyRing"):
        save_checkpoint(tmp_path, 1, Ring().state(), tag="best")


def test_a_full_disk_leaves_the_older_ones_and_the_next_one_is_whole(tmp_path: Path, file_size_limit) -> None:
    ring = Ring(160_000)
    ring.write(10)
    save_checkpoint(tmp_path, 1, ring.state())
    ring.write(30_000)
    file_size_limit(50_000)
    with pytest.raises(DiskFull):
        save_checkpoint(tmp_path, 2, ring.state())
    assert load_checkpoint(tmp_path).frame == 1
    file_size_limit(10_000_000)
    save_checkpoint(tmp_path, 3, ring.state())
    assert ring.holds(load_checkpoint(tmp_path).state["ring"])


SAVE = """
    import sys
    from pathlib import Path
    from rldsl.store import save_checkpoint
    from tests.store.test_append_only_ring import Ring
    ring = Ring()
    for frame in range(1, 100_000):
        ring.write(7)
        save_checkpoint(Path(sys.argv[1]), frame, ring.state())
        print(frame)
"""


def test_killed_while_saving(tmp_path: Path, child) -> None:
    for attempt in range(3):
        directory = tmp_path / str(attempt)
        saver = child(SAVE, directory)
        saver.line()
        time.sleep(random.random() * 0.3)
        acknowledged = int(["1", *saver.kill()][-1])
        loaded = load_checkpoint(directory)
        assert loaded.damaged == [] and acknowledged <= loaded.frame <= acknowledged + 1
        ring = Ring()
        ring.write(7 * loaded.frame)
        assert ring.holds(loaded.state["ring"])
        ring.saved = loaded.state["ring"].saved
        ring.write(7)
        save_checkpoint(directory, loaded.frame + 1, ring.state())
        assert ring.holds(load_checkpoint(directory).state["ring"])
