from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldsl.store.errors import WrongColumns
from rldsl.store.metrics import MetricsReader, MetricsWriter, last_row, read_metrics

COLUMNS = ["frame", "reward", "loss"]
values = st.none() | st.integers(-(2**70), 2**70) | st.floats()

WRITE = """
    import sys
    from pathlib import Path
    from rldsl.store.metrics import MetricsWriter
    writer = MetricsWriter(Path(sys.argv[1]), ["frame", "reward", "loss"])
    for frame in range(int(sys.argv[2]), 1_000_000):
        if writer.write({"frame": frame, "reward": frame / 3, "loss": None}):
            print(frame)
"""


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return a == b and type(a) is type(b)


@given(st.lists(st.tuples(values, values), max_size=10))
def test_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("metrics") / "metrics.csv"
    writer = MetricsWriter(path, COLUMNS)
    for frame, (reward, loss) in enumerate(rows):
        assert writer.write({"loss": loss, "frame": frame, "reward": reward})
    table = read_metrics(path)
    assert list(table) == COLUMNS
    assert table["frame"] == list(range(len(rows)))
    assert all(same(a, b) for a, b in zip(table["reward"], [row[0] for row in rows], strict=True))
    assert all(same(a, b) for a, b in zip(table["loss"], [row[1] for row in rows], strict=True))
    reader = MetricsReader(path)
    assert len(reader.read_new()) == len(rows)
    assert reader.malformed == 0


def test_numpy_numbers(tmp_path):
    writer = MetricsWriter(tmp_path / "m.csv", COLUMNS)
    writer.write({"frame": np.int64(3), "reward": np.float32(0.1), "loss": np.int32(-4)})
    assert (tmp_path / "m.csv").read_text().splitlines()[1] == f"3,{float(np.float32(0.1))!r},-4"


def test_what_is_written(tmp_path):
    writer = MetricsWriter(tmp_path / "m.csv", COLUMNS)
    writer.write({"frame": 10, "reward": math.nan, "loss": -math.inf})
    writer.write({"frame": 20, "reward": None, "loss": 0.1})
    assert (tmp_path / "m.csv").read_text() == "frame,reward,loss\n10,nan,-inf\n20,,0.1\n"


def test_a_resumed_session_doubles_nothing(tmp_path):
    path = tmp_path / "m.csv"
    row = {"reward": 1.0, "loss": 2.0}
    writer = MetricsWriter(path, COLUMNS)
    assert all(writer.write({"frame": frame, **row}) for frame in (10, 20, 30))
    with path.open("a") as file:
        file.write("40,1.0")
    resumed = MetricsWriter(path, COLUMNS)
    assert resumed.last_frame == 30
    assert [resumed.write({"frame": frame, **row}) for frame in (20, 30, 40, 50)] == [False, False, True, True]
    assert read_metrics(path)["frame"] == [10, 20, 30, 40, 50]


def test_other_columns_are_an_error_that_names_them(tmp_path):
    path = tmp_path / "m.csv"
    writer = MetricsWriter(path, COLUMNS)
    with pytest.raises(WrongColumns, match="lacks loss and must not have entropy"):
        MetricsWriter(path, ["frame", "reward", "entropy"])
    with pytest.raises(WrongColumns, match="another order"):
        MetricsWriter(path, ["frame", "loss", "reward"])
    with pytest.raises(WrongColumns, match="lacks loss"):
        writer.write({"frame": 1, "reward": 1.0})
    with pytest.raises(WrongColumns, match="not a whole number"):
        writer.write({"frame": 1.5, "reward": 1.0, "loss": 1.0})


@pytest.mark.parametrize("columns", [[], ["reward", "frame"], ["frame", "a,b"], ["frame", "a", "a"], ["frame", ""]])
def test_columns_that_cannot_be(tmp_path, columns):
    with pytest.raises(WrongColumns):
        MetricsWriter(tmp_path / "m.csv", columns)


def test_half_a_header_is_written_anew(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("frame,rew")
    MetricsWriter(path, COLUMNS)
    assert path.read_text() == "frame,reward,loss\n"


def test_reader_follows_and_passes_over_what_is_malformed(tmp_path):
    path = tmp_path / "m.csv"
    reader = MetricsReader(path)
    assert reader.read_new() == []
    path.write_text("frame,reward,loss\n1,2.0,\nx,y,z\n1,2\n2,3")
    assert reader.read_new() == [{"frame": 1, "reward": 2.0, "loss": None}]
    assert (reader.columns, reader.malformed) == (COLUMNS, 2)
    with path.open("a") as file:
        file.write(".5,7\n")
    assert reader.read_new() == [{"frame": 2, "reward": 3.5, "loss": 7}]
    path.write_text("frame,other\n5,6\n")
    assert reader.read_new() == [{"frame": 5, "other": 6}]
    assert reader.restarted


def test_last_row_of_little(tmp_path):
    path = tmp_path / "m.csv"
    assert last_row(path) is None
    for text in ("", "frame,re", "frame,reward\n", "frame,reward\n1"):
        path.write_text(text)
        assert last_row(path) is None
    path.write_text("frame,reward\n1,2\nrubbish\n3")
    assert last_row(path) == {"frame": 1, "reward": 2}


@given(st.integers(1, 400), st.integers(0, 9000))
def test_last_row_behind_any_amount_of_rubbish(tmp_path_factory, rows, rubbish):
    path = tmp_path_factory.mktemp("metrics") / "m.csv"
    path.write_text("frame,reward\n" + "".join(f"{i},{i / 7}\n" for i in range(rows)) + "r" * rubbish + "\n3")
    assert last_row(path) == {"frame": rows - 1, "reward": (rows - 1) / 7}


def test_reading_is_fast(tmp_path):
    path = tmp_path / "m.csv"
    columns = ["frame", *(f"m{i}" for i in range(9))]
    path.write_text(",".join(columns) + "\n" + "".join(f"{i},{','.join([repr(i / 7)] * 9)}\n" for i in range(10_000)))
    assert len(read_metrics(path)["m8"]) == 10_000
    assert quickest(lambda: read_metrics(path)) < 0.1
    assert quickest(lambda: last_row(path)) < 0.001


def quickest(act: Callable[[], object]) -> float:
    """Seconds of the best of a few tries: what the code costs, not what the neighbours do."""
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        act()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def test_killed_and_resumed_writers_leave_every_frame_once(tmp_path, child):
    path = tmp_path / "m.csv"
    acknowledged = -1
    for _ in range(3):
        writer = child(WRITE, path, max(0, acknowledged - 50))
        acknowledged = int([writer.line(), *writer.kill()][-1])
        frames = read_metrics(path)["frame"]
        assert frames == list(range(len(frames)))
        assert len(frames) > acknowledged


def test_columns_of_schema_1_are_read_by_their_names_of_today(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("frame,return,return_ma,length\n10,1.5,1.25,3.0\n")
    row = {"frame": 10, "episode_return": 1.5, "episode_return_ma": 1.25, "length": 3.0}
    assert last_row(path) == row
    assert MetricsReader(path).read_new() == [row]
    assert read_metrics(path) == {name: [value] for name, value in row.items()}
