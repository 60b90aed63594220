"""Learning curves are read incrementally, thinned and averaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rldsl.monitor import curves
from rldsl.monitor.curves import Curve, averaged, metrics_of, single
from rldsl.store.metrics import MetricsWriter
from tests.monitor.sample_sessions import COLUMNS, row


@pytest.fixture
def writer(tmp_path: Path) -> MetricsWriter:
    return MetricsWriter(tmp_path / "metrics.csv", COLUMNS)


def test_a_curve_grows_with_its_file(tmp_path: Path, writer: MetricsWriter) -> None:
    curve = Curve(tmp_path, ".")
    assert not curve.read()
    assert curve.points("frame", "episode_return")[0].size == 0
    writer.write(row(100, 1.0))
    assert curve.read()
    writer.write(row(200, 2.0))
    assert curve.read()
    x, y = curve.points("frame", "episode_return")
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


def test_memory_is_bounded_and_the_newest_point_is_kept(
    tmp_path: Path, writer: MetricsWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "MAX_POINTS", 16)
    curve = Curve(tmp_path, ".")
    for frame in range(1, 200):
        writer.write(row(frame, float(frame)))
        curve.read()
    x, y = curve.points("frame", "episode_return")
    assert len(x) <= 18
    assert x[0] == 1
    assert x[-1] == y[-1] == 199
    assert (np.diff(x) > 0).all()


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
    line = averaged("both", [(x, np.array([0.0, 10.0])), (x, np.array([0.0, 30.0]))])
    assert (line.y[-1], line.low[-1], line.high[-1], line.seeds) == (20.0, 10.0, 30.0, 2)


def test_the_mean_is_over_the_seeds_that_reached_a_frame() -> None:
    long, short = np.array([0.0, 100.0]), np.array([0.0, 50.0])
    line = averaged("both", [(long, np.array([0.0, 10.0])), (short, np.array([0.0, 50.0]))])
    assert line.y[-1] == 10.0
    assert line.x[-1] == 100.0


def test_the_mean_of_one_session_is_that_session() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert averaged("one", [(x, y), (np.empty(0), np.empty(0))]).low is None
    assert averaged("none", []).last is None
    assert single("one", (x, y)).last == 4.0
