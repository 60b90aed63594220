"""Curves of seeds joined by frame: unequal lengths, missing first points, different log frames."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rldsl.report.learning_curve import Curve, join

NAN = math.nan


def identity(*frames: float) -> Curve:
    """The value at each frame is the frame: whatever is joined correctly is the identity, too."""
    return Curve.of(frames, frames)


def test_points_without_a_value_are_left_out() -> None:
    curve = Curve.of([100, 200, 300, 400], [None, NAN, 3.0, 4.0])
    assert_array_equal(curve.frame, [300, 400])
    assert_array_equal(curve.value, [3.0, 4.0])


def test_mean_lowest_and_highest_seed() -> None:
    joined = join(
        [Curve.of([100, 200], [1.0, 5.0]), Curve.of([100, 200], [2.0, 4.0]), Curve.of([100, 200], [6.0, 3.0])]
    )
    assert_array_equal(joined.frame, [100, 200])
    assert_array_equal(joined.mean, [3.0, 4.0])
    assert_array_equal(joined.low, [1.0, 3.0])
    assert_array_equal(joined.high, [6.0, 5.0])
    assert_array_equal(joined.n, [3, 3])
    assert_array_equal(joined.seeds, [[1.0, 5.0], [2.0, 4.0], [6.0, 3.0]])


def test_seeds_are_joined_by_frame_not_by_index() -> None:
    """The first episode of one seed ends two log points later than that of the other."""
    late = Curve.of([80, 160, 240, 320, 400], [None, None, 240.0, 320.0, 400.0])
    joined = join([identity(80, 160, 240, 320, 400), late])
    assert_array_equal(joined.frame, [240, 320, 400])
    for values in (joined.mean, joined.low, joined.high, *joined.seeds):
        assert_array_equal(values, [240, 320, 400])


def test_a_shorter_seed_ends_the_curve_so_that_the_mean_does_not_jump() -> None:
    short, long = Curve.of([100, 200], [0.0, 0.0]), Curve.of([100, 200, 300], [10.0, 10.0, 10.0])
    assert_array_equal(join([short, long]).mean, [5.0, 5.0])


def test_fewer_seeds_can_be_enough() -> None:
    curves = [Curve.of([100, 200], [0.0, 0.0]), Curve.of([200, 300], [10.0, 10.0])]
    joined = join(curves, min_seeds=1)
    assert_array_equal(joined.frame, [100, 200, 300])
    assert_array_equal(joined.mean, [0.0, 5.0, 10.0])
    assert_array_equal(joined.n, [1, 2, 1])
    assert_array_equal(joined.seeds, [[0.0, 0.0, NAN], [NAN, 10.0, 10.0]])


def test_seeds_with_different_log_frames_are_interpolated_and_never_extended() -> None:
    joined = join([identity(100, 200, 300), identity(150, 250)])
    assert_array_equal(joined.frame, [150, 200, 250])
    assert_array_equal(joined.low, [150, 200, 250])
    assert_array_equal(joined.high, [150, 200, 250])


def test_a_seed_without_points_is_left_out() -> None:
    joined = join([Curve.of([100], [None]), identity(100, 200)])
    assert_array_equal(joined.mean, [100, 200])
    assert_array_equal(joined.n, [1, 1])


@pytest.mark.parametrize("curves", [[], [Curve.of([], [])], [identity(100, 200), identity(300)]])
def test_without_common_frames_there_is_no_curve(curves: list[Curve]) -> None:
    joined = join(curves)
    assert [values.size for values in joined[:5]] == [0] * 5


def test_a_long_curve_is_thinned_and_keeps_both_ends() -> None:
    joined = join([identity(*range(1, 1001))] * 2, max_points=100)
    assert joined.frame.size == 100
    assert (joined.frame[0], joined.frame[-1]) == (1, 1000)
    assert_array_equal(joined.mean, joined.frame)
    assert set(np.diff(joined.frame)) <= {10, 11}
    assert join([identity(1, 2, 3)], max_points=100).frame.size == 3
