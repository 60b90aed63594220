from __future__ import annotations

import sys
import time

import pytest

from rldsl.store import DiskFull, TensorBoardWriter
from rldsl.store.tensorboard import Settings, tag_of

SETTINGS = Settings(
    "231dbbb10708",
    {"agent": {"kind": "ppo", "clip": 0.2, "lr": {"kind": "linear", "start": 1e-3}, "sil": None, "shared": True}},
    "PPO.clip = 0.2\nPPO.shared = True\n",
)


def accumulated(directory):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory))
    events.Reload()
    return events


def read(directory, column):
    return [(event.step, event.value, event.wall_time) for event in accumulated(directory).Scalars(tag_of(column))]


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


@pytest.mark.parametrize(
    ("column", "tag"),
    [
        ("episode_return", "charts/episode_return"),
        ("episode_return_ma", "charts/episode_return_ma"),
        ("length", "charts/length"),
        ("fps", "time/fps"),
        ("eval_return", "eval/eval_return"),
        ("policy_loss", "losses/policy_loss"),
        ("explained_variance", "train/explained_variance"),
        ("mine/other", "mine/other"),
    ],
)
def test_tags_are_grouped(tmp_path, column, tag):
    TensorBoardWriter(tmp_path).scalars(1, {column: 1.0})
    assert accumulated(tmp_path).Tags()["scalars"] == [tag]


def test_the_settings_are_hparams_grouped_by_trial_and_text(tmp_path):
    from tensorboard.plugins.hparams import metadata

    TensorBoardWriter(tmp_path, settings=lambda: SETTINGS).scalars(1, {"reward": 1.0})
    TensorBoardWriter(tmp_path, settings=lambda: pytest.fail("they were written already")).scalars(2, {"reward": 1.0})
    events = accumulated(tmp_path)
    content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    info = metadata.parse_session_start_info_plugin_data(content)
    assert info.group_name == "231dbbb10708"
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in info.hparams.items()}
    assert values == {
        "agent.kind": "ppo",
        "agent.clip": 0.2,
        "agent.lr.kind": "linear",
        "agent.lr.start": 1e-3,
        "agent.sil": "None",
        "agent.shared": True,
    }
    (text,) = events.Tensors("settings")
    assert text.tensor_proto.string_val[0].decode() == "    PPO.clip = 0.2\n    PPO.shared = True"


def test_a_log_point_costs_less_than_a_millisecond(tmp_path):
    """CPU time of this process: 15 metrics of a log point take about a tenth of that."""
    writer = TensorBoardWriter(tmp_path, settings=lambda: SETTINGS)
    values = {f"metric_{index}": float(index) for index in range(15)}
    writer.scalars(0, values)
    start = time.process_time()
    for step in range(1, 201):
        writer.scalars(step, values)
    assert (time.process_time() - start) / 200 < 1e-3
