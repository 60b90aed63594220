"""Statistics over runs: by hand, against rliable and scipy, and by how often an interval contains the truth."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from arch.bootstrap import IIDBootstrap
from hypothesis import given
from hypothesis import strategies as st
from rliable import library, metrics

from rldsl.maths import statistics

RUNS, TASKS = 7, 5
SCORES = np.random.default_rng(0).normal(size=(RUNS, TASKS)) + np.arange(TASKS)
"""rliable's layout: `[runs, tasks]`."""
OTHERS = np.random.default_rng(1).normal(size=(RUNS, TASKS)) + np.arange(TASKS) * 1.2


@pytest.fixture
def rliable_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets rliable 1.2 run with arch 8, where the argument `random_state` is called `seed`, and seeds its generator."""
    init = IIDBootstrap.__init__

    def init_without_random_state(self: Any, *args: Any, random_state: None = None) -> None:
        init(self, *args)

    monkeypatch.setattr(IIDBootstrap, "__init__", init_without_random_state)
    np.random.seed(0)


@pytest.mark.usefixtures("rliable_generator")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (statistics.mean, metrics.aggregate_mean),
        (statistics.median, metrics.aggregate_median),
        (statistics.iqm, metrics.aggregate_iqm),
    ],
)
def test_aggregates_and_their_stratified_bootstrap_are_rliables(ours: Any, theirs: Any) -> None:
    (point, interval) = library.get_interval_estimates({"a": SCORES}, lambda x: np.array([theirs(x)]), reps=5000)
    assert ours(list(SCORES.T)) == pytest.approx(point["a"][0])
    got = statistics.bootstrap_interval(list(SCORES.T), ours, resamples=5000)
    np.testing.assert_allclose(got, interval["a"][:, 0], atol=0.03)


@pytest.mark.usefixtures("rliable_generator")
def test_performance_profile_and_its_band_are_rliables() -> None:
    thresholds = np.linspace(-1, 6, 20)
    profiles, bands = library.create_performance_profile({"a": SCORES}, thresholds)
    np.testing.assert_allclose(statistics.performance_profile(list(SCORES.T), thresholds), profiles["a"])
    np.testing.assert_allclose(statistics.profile_band(list(SCORES.T), thresholds), bands["a"], atol=0.04)


def test_probability_of_improvement_is_rliables() -> None:
    by_task = [statistics.probability_of_improvement(a, b) for a, b in zip(SCORES.T, OTHERS.T, strict=True)]
    assert np.mean(by_task) == pytest.approx(metrics.probability_of_improvement(OTHERS, SCORES))


def test_probability_of_improvement_by_hand() -> None:
    # pairs where B wins: (1, 2), (1, 3), (2, 3); ties: (2, 2); of 6 pairs
    assert statistics.probability_of_improvement([1.0, 2.0, 9.0], [2.0, 3.0]) == pytest.approx(3.5 / 6)
    assert statistics.probability_of_improvement([500.0] * 4, [500.0] * 4) == 0.5
    assert math.isnan(statistics.probability_of_improvement([1.0, math.nan], [2.0]))
    assert math.isnan(statistics.probability_of_improvement([], [2.0]))


@pytest.mark.parametrize(
    ("a", "b"), [([1.0, 4.0, 6.0, 7.0], [2.0, 3.0, 5.0, 8.0, 9.0]), ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])]
)
def test_improvement_interval_solves_newcombes_equation(a: list[float], b: list[float]) -> None:
    observed = statistics.probability_of_improvement(a, b)
    interval = statistics.improvement_interval(a, b)
    mean_n = (len(a) + len(b)) / 2 - 1
    for p in interval:
        hanley_mcneil = p * (1 - p) * (1 + mean_n * (1 - p) / (2 - p) + mean_n * p / (1 + p)) / (len(a) * len(b))
        assert abs(p - observed) == pytest.approx(1.959964 * math.sqrt(hanley_mcneil), abs=1e-6)
    assert interval.low < observed <= interval.high <= 1
    assert statistics.improvement_interval(b, a) == pytest.approx((1 - interval.high, 1 - interval.low))


def test_no_improvement_interval_for_few_runs_or_nan() -> None:
    assert not statistics.improvement_interval([1.0, 2.0], [1.0, 2.0, 3.0]).known
    assert not statistics.improvement_interval([1.0, 2.0, math.nan], [1.0, 2.0, 3.0]).known


def test_performance_profile_gives_each_task_the_same_weight() -> None:
    # above 0: 1 of 1 run of the first task, 0 of 3 of the second
    np.testing.assert_array_equal(statistics.performance_profile([[1.0], [0.0, 0.0, -1.0]], [0.0, 2.0]), [0.5, 0.0])


def test_iqm_by_hand() -> None:
    # without the lowest and the highest 8 // 4 = 2: (3 + 4 + 5 + 6) / 4
    assert statistics.iqm([[100.0, 1.0, 3.0, 4.0], [-50.0, 5.0, 6.0, 99.0]]) == 4.5
    np.testing.assert_array_equal(statistics.iqm([[[0.0, 1.0, 3.0, 9.0], [4.0, 4.0, 4.0, 4.0]]]), [2.0, 4.0])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_iqm_is_scipys_trimmed_mean(runs: list[float]) -> None:
    assert statistics.iqm([runs]) == pytest.approx(scipy.stats.trim_mean(runs, 0.25), abs=1e-6)


def test_a_failed_run_is_not_trimmed_away() -> None:
    failed = [1.0, 2.0, 3.0, np.nan]
    assert np.isnan(statistics.iqm([failed]))
    assert np.isnan(statistics.iqm([[]]))
    for interval in (
        statistics.bootstrap_interval([failed]),
        statistics.interval_of_mean(failed),
        statistics.difference_interval(failed, [1.0, 2.0, 3.0]),
    ):
        assert not interval.known


def test_bootstrap_is_stratified() -> None:
    # Each task's runs agree: whatever is drawn, the mean of the task means is (0 + 10) / 2.
    assert statistics.bootstrap_interval([[0.0] * 3, [10.0] * 4], statistics.mean) == (5.0, 5.0)


def test_bootstrap_repeats_with_its_seed() -> None:
    runs = [np.random.default_rng(0).normal(size=10)]
    first, second, other = (statistics.bootstrap_interval(runs, rng=np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first == second != other
    assert first.low < statistics.iqm(runs) < first.high


def test_interval_of_mean_by_hand_and_as_scipys() -> None:
    # 1, 2, 3: s / sqrt 3 = 0.57735, and t with 2 degrees of freedom is 4.30265
    np.testing.assert_allclose(statistics.interval_of_mean([1.0, 2.0, 3.0]), (2 - 2.48414, 2 + 2.48414), atol=1e-5)
    for n in (3, 4, 5, 10, 31, 200):
        runs = np.random.default_rng(n).normal(size=n)
        for confidence in (0.5, 0.95, 0.999):
            want = scipy.stats.t.interval(confidence, n - 1, loc=runs.mean(), scale=scipy.stats.sem(runs))
            np.testing.assert_allclose(statistics.interval_of_mean(runs, confidence), want, rtol=1e-9)


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 10), (10, 3)])
def test_difference_interval_is_scipys_welch_interval(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=n), 3 * rng.normal(size=m) + 1
    want = scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose(statistics.difference_interval(a, b), (want.low, want.high), rtol=1e-9)


@pytest.mark.parametrize("scores", [[], [1.0], [1.0, 2.0], [500.0] * 4])
def test_no_interval_for_few_or_equal_runs(scores: list[float]) -> None:
    assert not statistics.interval_of_mean(scores).known
    assert not statistics.difference_interval(scores, scores).known


def test_a_difference_has_an_interval_if_one_of_both_varies() -> None:
    low, high = statistics.difference_interval([500.0] * 4, [480.0, 490.0, 470.0, 480.0])
    assert low < -20 < high < 0


def test_no_bootstrap_interval_if_a_task_has_fewer_than_three_runs() -> None:
    assert not statistics.bootstrap_interval([]).known
    assert not statistics.bootstrap_interval([[1.0, 2.0, 3.0], [1.0, 2.0]]).known


def test_scores_statistics_schedules_and_normalizers_need_no_torch() -> None:
    code = (
        "import sys, rldsl.maths.scores, rldsl.maths.statistics, rldsl.maths.schedules, rldsl.maths.normalizers;"
        "sys.exit('torch' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
