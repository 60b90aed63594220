"""Scores of a curve by hand, and what they are when there is little or nothing to score."""

import math

import numpy as np
import pytest

from rldsl.maths import scores

NAN = math.nan


def test_total_reward_ma_is_the_mean_of_the_last_hundred_points() -> None:
    # 0..149: the last hundred are 50..149, mean 99.5
    assert scores.total_reward_ma(range(150)) == 99.5
    assert scores.total_reward_ma([1.0, 2.0, 6.0]) == 3.0  # fewer points: all of them


def test_moving_average_by_hand() -> None:
    np.testing.assert_allclose(scores.moving_average([1.0, 3.0, 5.0, 1.0], window=2), [1.0, 2.0, 4.0, 3.0])
    curve = np.random.default_rng(0).normal(size=250)
    assert scores.moving_average(curve)[-1] == pytest.approx(scores.total_reward_ma(curve))


def test_nan_before_the_first_episode_is_no_point_and_later_it_is_a_fault() -> None:
    np.testing.assert_allclose(scores.moving_average([NAN, 2.0, 4.0], window=2), [NAN, 2.0, 3.0])
    np.testing.assert_allclose(scores.moving_average([2.0, NAN, 4.0, 6.0], window=2), [2.0, NAN, NAN, 5.0])
    assert scores.total_reward_ma([NAN, NAN, 2.0, 4.0]) == 3.0
    assert math.isnan(scores.total_reward_ma([2.0, NAN, 4.0]))
    for score in (scores.strength, scores.max_strength, scores.stability):
        assert score([NAN, 2.0, 3.0]) == score([2.0, 3.0])
        assert math.isnan(score([2.0, NAN, 3.0]))
    assert scores.sample_efficiency([NAN, 2.0], [1, 4]) == scores.sample_efficiency([2.0], [4])
    assert math.isnan(scores.sample_efficiency([2.0, NAN], [1, 4]))


def test_strengths_by_hand() -> None:
    strengths = scores.local_strengths([12.0, 20.0, 16.0], random_return=10.0)
    np.testing.assert_array_equal(strengths, [2.0, 10.0, 6.0])
    assert (scores.strength(strengths), scores.max_strength(strengths), scores.final_strength(strengths)) == (6, 10, 6)


def test_efficiency_by_hand() -> None:
    # (2 / 1 + 10 / 2 + 6 / 4) / 18 = 8.5 / 18
    assert scores.sample_efficiency([2.0, 10.0, 6.0], [1, 2, 4]) == pytest.approx(8.5 / 18)
    # no optimizer step before the first point: (10 / 2 + 6 / 4) / 18
    assert scores.training_efficiency([2.0, 10.0, 6.0], [0, 2, 4]) == pytest.approx(6.5 / 18)
    with pytest.raises(ValueError, match="2 strengths but 1 times"):
        scores.sample_efficiency([1.0, 2.0], [1])


def test_stability_by_hand() -> None:
    # drops: -4 and -1; strengths without the last: 2 + 10 + 6 + 7 = 25
    assert scores.stability([2.0, 10.0, 6.0, 7.0, 6.0]) == pytest.approx(1 - 5 / 25)
    assert scores.stability([1.0, 2.0, 3.0]) == 1.0


def test_consistency_by_hand() -> None:
    # stds over two seeds, unbiased: |1 - 3| / sqrt 2 = sqrt 2, and 0; means 2 and 4
    assert scores.consistency([[1.0, 4.0], [3.0, 4.0]]) == pytest.approx(1 - 2 * math.sqrt(2) / 6)
    assert scores.consistency([[NAN, 1.0, 4.0, 9.0], [7.0, 3.0, 4.0]]) == pytest.approx(1 - 2 * math.sqrt(2) / 6)
    assert scores.consistency([[1.0, 2.0], [1.0, 2.0]]) == 1.0


def test_too_few_points_or_seeds_score_nan() -> None:
    for score in (scores.total_reward_ma, scores.strength, scores.max_strength, scores.final_strength):
        assert math.isnan(score([]))
        assert math.isnan(score([NAN, NAN]))
        assert score([3.0]) == 3.0
    assert scores.moving_average([]).size == 0
    assert math.isnan(scores.sample_efficiency([], []))
    assert math.isnan(scores.sample_efficiency([0.0], [1]))
    assert scores.sample_efficiency([3.0], [2]) == 0.5
    assert math.isnan(scores.stability([1.0]))
    assert math.isnan(scores.stability([0.0, 0.0]))
    assert math.isnan(scores.consistency([]))
    assert math.isnan(scores.consistency([[1.0, 2.0]]))
    assert math.isnan(scores.consistency([[], [1.0]]))
