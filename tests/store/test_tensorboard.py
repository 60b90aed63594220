from __future__ import annotations

import sys

import pytest

from rldsl.store import DiskFull, TensorBoardWriter


def read(directory, tag):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory))
    events.Reload()
    return [(event.step, event.value, event.wall_time) for event in events.Scalars(tag)]


def test_scalars_can_be_read_at_once(tmp_path):
    writer = TensorBoardWriter(tmp_path / "tb")
    writer.scalars(10, {"reward": 1.5, "loss": 2.0}, wall_time=100.0)
    assert read(tmp_path / "tb", "reward") == [(10, 1.5, 100.0)]  # without a flush: a killed session loses none
    writer.scalars(20, {"reward": 2.5})
    writer.flush()
    writer.close()
    assert [event[:2] for event in read(tmp_path / "tb", "reward")] == [(10, 1.5), (20, 2.5)]
    assert read(tmp_path / "tb", "loss") == [(10, 2.0, 100.0)]


def test_a_resumed_session_takes_back_what_it_repeats(tmp_path):
    writer = TensorBoardWriter(tmp_path)
    for step in (10, 20, 30):
        writer.scalars(step, {"reward": step})
    resumed = TensorBoardWriter(tmp_path, resume_step=11)
    for step in (20, 30, 40):
        resumed.scalars(step, {"reward": step})
    assert [event[0] for event in read(tmp_path, "reward")] == [10, 20, 30, 40]


def test_nothing_written_is_no_file(tmp_path):
    writer = TensorBoardWriter(tmp_path / "tb")
    writer.flush()
    writer.close()
    assert not (tmp_path / "tb").exists()


def test_a_full_disk_is_a_sentence(tmp_path, file_size_limit):
    writer = TensorBoardWriter(tmp_path)
    file_size_limit(500)
    with pytest.raises(DiskFull):
        for step in range(100):
            writer.scalars(step, {"reward": 1.0})


def test_it_needs_no_deep_learning_library(tmp_path):
    TensorBoardWriter(tmp_path).scalars(1, {"x": 1.0})
    assert "tensorflow" not in sys.modules
