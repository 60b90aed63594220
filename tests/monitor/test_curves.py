"""Learning curves are read incrementally, thinned and averaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from rldsl.monitor import curves
from rldsl.monitor.chart_lines import averaged, ema, single
from rldsl.monitor.curves import Curve, Points, metrics_of, parse_rows
from rldsl.store.metrics import MetricsWriter
from tests.monitor.sample_sessions import COLUMNS, row


@pytest.fixture
def writer(tmp_path: Path) -> MetricsWriter:
    return MetricsWriter(tmp_path / "metrics.csv", COLUMNS)


def points(x: ArrayLike, y: ArrayLike) -> Points:
    return Points(np.asarray(x, float), *(np.asarray(y, float) for _ in range(3)))


def test_a_curve_grows_with_its_file(tmp_path: Path, writer: MetricsWriter) -> None:
    curve = Curve(tmp_path, ".")
    assert not curve.read()
    assert curve.points("frame", "episode_return")[0].size == 0
    writer.write(row(100, 1.0))
    assert curve.read()
    writer.write(row(200, 2.0))
    assert curve.read()
    x, y, *_ = curve.points("frame", "episode_return")
    assert (x.tolist(), y.tolist()) == ([100, 200], [1.0, 2.0])
    assert not curve.read()


def test_missing_and_nan_values_are_left_out(tmp_path: Path, writer: MetricsWriter) -> None:
    writer.write({**row(100, 1.0), "episode_return": None})
    writer.write({**row(200, 2.0), "episode_return": float("nan")})
    writer.write(row(300, 3.0))
    curve = Curve(tmp_path, ".")
    curve.read()
    assert curve.points("frame", "episode_return")[0].tolist() == [300]
    assert curve.points("frame", "no such metric")[0].size == 0


def test_memory_is_bounded_and_spikes_are_kept(
    tmp_path: Path, writer: MetricsWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "MAX_BUCKETS", 16)
    curve = Curve(tmp_path, ".")
    values = {frame: float(frame) for frame in range(1, 200)} | {57: 9999.0, 130: -9999.0}
    for frame, value in values.items():
        writer.write(row(frame, value))
        curve.read()
    points = curve.points("frame", "episode_return")
    assert len(points.x) <= 17
    assert (np.diff(points.x) > 0).all()
    assert points.high.max() == 9999.0 and points.low.min() == -9999.0
    assert points.high[-1] == 199
    x, y = points.outline
    assert y.max() == 9999.0 and y.min() == -9999.0 and (np.diff(x) >= 0).all()
    assert points.y.mean() == pytest.approx(np.mean(list(values.values())), rel=0.2)
    assert curve.rows == 199


def test_a_replaced_file_is_read_from_its_beginning(tmp_path: Path, writer: MetricsWriter) -> None:
    curve = Curve(tmp_path, ".")
    for frame in (100, 200, 300):
        writer.write(row(frame, 1.0))
    curve.read()
    (tmp_path / "metrics.csv").unlink()
    MetricsWriter(tmp_path / "metrics.csv", COLUMNS).write(row(50, 5.0))
    curve.read()
    assert curve.points("frame", "episode_return")[0].tolist() == [50]


def test_the_metrics_are_those_of_the_files(tmp_path: Path, writer: MetricsWriter) -> None:
    curve = Curve(tmp_path, ".")
    curve.read()
    assert metrics_of([curve]) == list(COLUMNS[1:])


def test_an_averaged_line_has_the_lowest_and_highest_seed() -> None:
    x = np.array([0.0, 100.0])
    line = averaged("both", [points(x, [0.0, 10.0]), points(x, [0.0, 30.0])])
    assert (line.y[-1], line.low[-1], line.high[-1], line.seeds) == (20.0, 10.0, 30.0, 2)


def test_the_mean_is_over_the_seeds_that_reached_a_frame() -> None:
    long, short = np.array([0.0, 100.0]), np.array([0.0, 50.0])
    line = averaged("both", [points(long, [0.0, 10.0]), points(short, [0.0, 50.0])])
    assert line.y[-1] == 10.0
    assert line.x[-1] == 100.0


def test_the_mean_of_one_session_is_that_session() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert averaged("one", [points(x, y), points([], [])]).low is None
    assert averaged("none", []).last is None
    assert single("one", points(x, y)).last == 4.0


def test_rows_are_parsed_and_malformed_ones_counted() -> None:
    rows, malformed = parse_rows(b"1,2.5,\n2,nan,-3e308\n3,,inf\n", 3)
    assert malformed == 0
    assert np.array_equal(rows, [[1, 2.5, np.nan], [2, np.nan, -3e308], [3, np.nan, np.inf]], equal_nan=True)
    rows, malformed = parse_rows(b"1,2,3\n1,2\nx,2,3\n4,5,6,7\n\xff\xfe,,\n7,8,9\n", 3)
    assert (rows.tolist(), malformed) == ([[1, 2, 3], [7, 8, 9]], 4)
    assert parse_rows(b"1,2,3,4\n1,2\n", 3)[1] == 2, "as many values as expected, but not in these lines"


def test_a_file_is_read_chunk_by_chunk(tmp_path: Path, writer: MetricsWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    for frame in range(1, 100):
        writer.write(row(frame, float(frame)))
    monkeypatch.setattr(curves, "CHUNK", 64)
    curve = Curve(tmp_path, ".")
    assert len(list(curve.read_chunks())) > 50
    assert curve.points("frame", "episode_return").x.tolist() == list(range(1, 100))
    assert curve.offset == curve.size


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    curve = Curve(tmp_path, ".")
    assert not curve.read() and curve.problem == "", "there is no file yet"
    (tmp_path / "metrics.csv").write_text("a,b\n1,2\n")
    curve.read()
    assert curve.problem == "metrics.csv has no column frame"
    (tmp_path / "metrics.csv").unlink()
    (tmp_path / "metrics.csv").mkdir()
    curve.read()
    assert "metrics.csv cannot be read" in curve.problem
    (tmp_path / "metrics.csv").rmdir()
    (tmp_path / "metrics.csv").write_text("frame,b\n1,2\nnonsense\n")
    curve.read()
    assert (curve.problem, curve.malformed, curve.rows) == ("", 1, 1)


def test_the_moving_average_starts_without_a_bias() -> None:
    assert ema(np.full(50, 7.0), 0.9).tolist() == pytest.approx([7.0] * 50)
    slow = ema(np.array([0.0, 1.0]), 0.9)
    assert slow.tolist() == pytest.approx([0.0, 0.1 / 0.19])
