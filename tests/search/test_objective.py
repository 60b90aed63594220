"""The value of a session at a rung, and of a trial over its seeds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scipy.stats import trim_mean

from rldsl.search.objective import Objective, iqm, session_value
from rldsl.store.metrics import MetricsWriter


def curve(path: Path, *returns: float | None) -> Path:
    """A session with a log point every 100 frames, and 2 seconds between them."""
    writer = MetricsWriter(path / "metrics.csv", ["frame", "seconds", "episode_return"])
    for index, value in enumerate(returns, start=1):
        writer.write({"frame": 100 * index, "seconds": 2.0 * index, "episode_return": value})
    return path / "metrics.csv"


def test_a_session_is_judged_by_its_last_log_points_up_to_the_rung(tmp_path: Path) -> None:
    path = curve(tmp_path, 1.0, 2.0, 3.0, 100.0)
    assert session_value(path, 300, last=2) == (2.5, 6.0)
    assert session_value(path, 399, last=2) == (2.5, 6.0), "what it did behind the rung does not count"
    assert session_value(path, None, last=2) == (51.5, 8.0)


def test_by_default_it_is_the_moving_average_of_the_metrics(tmp_path: Path) -> None:
    path = curve(tmp_path, *map(float, range(250)))
    assert session_value(path, None).value == pytest.approx(sum(range(150, 250)) / 100)


def test_log_points_before_the_first_episode_do_not_count(tmp_path: Path) -> None:
    assert session_value(curve(tmp_path, None, None, 4.0), 300).value == 4.0
    assert math.isnan(session_value(tmp_path / "metrics.csv", 200).value)
    assert math.isnan(session_value(tmp_path / "none.csv", 200).value)


@pytest.mark.parametrize(
    ("over_seeds", "maximize", "value"),
    [("mean", True, 4.0), ("median", True, 2.5), ("iqm", True, 2.5), ("min", True, 1.0), ("min", False, 10.0)],
)
def test_seeds_are_combined(over_seeds: str, maximize: bool, value: float) -> None:
    objective = Objective(over_seeds, maximize)
    assert objective.value([10.0, 1.0, 2.0, 3.0]) == value
    assert objective.score([10.0, 1.0, 2.0, 3.0]) == (value if maximize else -value)


def test_a_seed_without_a_value_makes_the_trial_worst() -> None:
    for maximize in (True, False):
        assert math.isnan(Objective(maximize=maximize).value([1.0, math.nan]))
        assert Objective(maximize=maximize).score([1.0, math.nan]) == -math.inf


@pytest.mark.parametrize("n", range(1, 13))
def test_the_interquartile_mean_is_that_of_scipy(n: int) -> None:
    values = [float((5 * i) % 13) ** 2 for i in range(n)]
    assert iqm(values) == pytest.approx(trim_mean(values, 0.25))
