"""Statistics over runs: by hand, against scipy, and by how often an interval holds the truth."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rldsl.maths import statistics


def test_interquartile_mean_by_hand() -> None:
    # without the lowest and the highest 8 // 4 = 2: (3 + 4 + 5 + 6) / 4
    assert statistics.interquartile_mean([100.0, 1.0, 3.0, 4.0, -50.0, 5.0, 6.0, 99.0]) == 4.5
    np.testing.assert_array_equal(
        statistics.interquartile_mean([[0.0, 1.0, 3.0, 9.0], [4.0, 4.0, 4.0, 4.0]]), [2.0, 4.0]
    )


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_interquartile_mean_is_scipys_trimmed_mean(runs: list[float]) -> None:
    assert statistics.interquartile_mean(runs) == pytest.approx(scipy.stats.trim_mean(runs, 0.25), abs=1e-6)


def test_a_failed_run_is_not_trimmed_away() -> None:
    assert np.isnan(statistics.interquartile_mean([1.0, 2.0, 3.0, np.nan]))
    assert np.isnan(statistics.interquartile_mean([]))
    assert np.isnan(statistics.bootstrap_interval([[1.0, 2.0, 3.0, np.nan]], np.random.default_rng(0))).all()
    assert np.isnan(statistics.mean_interval([1.0, np.nan])).all()


def test_bootstrap_interval_is_scipys() -> None:
    runs = np.random.default_rng(0).normal(size=30)
    got = statistics.bootstrap_interval([runs], np.random.default_rng(1), statistics.mean, resamples=20_000)
    want = scipy.stats.bootstrap(
        (runs,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    np.testing.assert_allclose(got, (want.low, want.high), atol=0.02)


def test_bootstrap_is_stratified() -> None:
    # Each task's runs agree: whatever is drawn, each task keeps its share, and the mean is (3 * 0 + 2 * 10) / 5 = 4.
    got = statistics.bootstrap_interval([[0.0] * 3, [10.0] * 2], np.random.default_rng(0), statistics.mean)
    assert got == (4.0, 4.0)


def test_bootstrap_repeats_with_its_seed() -> None:
    runs = [np.random.default_rng(0).normal(size=10)]
    first, second, other = (statistics.bootstrap_interval(runs, np.random.default_rng(s)) for s in (0, 0, 1))
    assert first == second != other
    assert first.low < statistics.interquartile_mean(runs[0]) < first.high


def test_bootstrap_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        low, high = statistics.bootstrap_interval(rng.normal(size=(4, 10)), rng, resamples=500)
        hits += low <= 0 <= high
    assert 0.90 <= hits / 300 <= 0.98


def test_mean_interval_by_hand_and_as_scipys() -> None:
    # 1, 3: mean 2, s / sqrt 2 = 1, and t(1 degree) = tan(.95 * pi / 2) = 12.7062
    np.testing.assert_allclose(statistics.mean_interval([1.0, 3.0]), (2 - 12.7062, 2 + 12.7062), atol=1e-4)
    for n in (2, 3, 4, 5, 10, 31, 200):
        runs = np.random.default_rng(n).normal(size=n)
        for confidence in (0.5, 0.95, 0.999):
            want = scipy.stats.t.interval(confidence, n - 1, loc=runs.mean(), scale=scipy.stats.sem(runs))
            np.testing.assert_allclose(statistics.mean_interval(runs, confidence), want, rtol=1e-9)


def test_mean_interval_covers_the_truth_with_four_seeds() -> None:
    runs = np.random.default_rng(0).normal(size=(2000, 4))
    intervals = np.array([statistics.mean_interval(row) for row in runs])
    coverage = ((intervals[:, 0] <= 0) & (intervals[:, 1] >= 0)).mean()
    assert abs(coverage - 0.95) < 0.015


def test_one_run_has_no_interval() -> None:
    rng = np.random.default_rng(0)
    for interval in (
        statistics.mean_interval([]),
        statistics.mean_interval([1.0]),
        statistics.bootstrap_interval([], rng),
        statistics.bootstrap_interval([[1.0, 2.0], [1.0]], rng),
    ):
        assert all(math.isnan(x) for x in interval)


def test_scores_statistics_schedules_and_normalizers_need_no_torch() -> None:
    code = (
        "import sys, rldsl.maths.scores, rldsl.maths.statistics, rldsl.maths.schedules, rldsl.maths.normalizers;"
        "sys.exit('torch' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
