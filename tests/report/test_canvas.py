"""Curves are drawn as braille dots, between labelled axes."""

from __future__ import annotations

import numpy as np
import pytest

from rldsl.report.canvas import NO_LINE, Window, draw, nice_ticks, scaled, target_row, unscaled, whole_window, y_ticks
from rldsl.report.panel import Line


def straight(label: str = "a", slope: float = 1.0) -> Line:
    x = np.linspace(0, 100, 11)
    return Line(label, x, x * slope)


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right() -> None:
    raster = draw([straight()], Window(0, 100, 0, 100), width=10, height=5)
    assert raster.owner[4, 0] == raster.owner[0, 9] == 0
    assert raster.owner[0, 0] == raster.owner[4, 9] == NO_LINE
    assert raster.text(4)[0] == "⣠", "the lower left dot, and two dots in the next column"


def test_a_steep_line_has_no_gaps() -> None:
    line = Line("step", np.array([0.0, 49.9, 50.0, 100.0]), np.array([0.0, 0.0, 100.0, 100.0]))
    raster = draw([line], Window(0, 100, 0, 100), width=10, height=6)
    assert (raster.owner != NO_LINE).any(axis=1).all()


def test_a_line_lies_inside_its_band() -> None:
    x = np.linspace(0, 100, 50)
    line = Line("a", x, x, x - 3, x + 3)
    raster = draw([line], Window(0, 100, -5, 105), width=20, height=9)
    assert (raster.band[raster.owner == 0] == 1).all()


def test_a_cell_in_two_bands_has_the_bits_of_both() -> None:
    x = np.linspace(0, 100, 50)
    raster = draw([Line("a", x, x, x - 30, x + 30), Line("b", x, x, x - 10, x + 10)], Window(0, 100, 0, 100), 20, 9)
    assert set(raster.band.ravel().tolist()) == {0, 1, 3}


def test_points_outside_of_the_window_are_not_drawn() -> None:
    raster = draw([straight()], Window(200, 300, 0, 100), width=10, height=5)
    assert (raster.owner == NO_LINE).all()


def test_one_point_is_a_dot() -> None:
    line = Line("a", np.array([50.0]), np.array([5.0]))
    raster = draw([line], whole_window([line], None, log=False), width=10, height=5)
    assert (raster.owner == 0).sum() >= 1


def test_the_whole_window_contains_all_lines_and_the_target() -> None:
    window = whole_window([straight(), straight("b", -2.0)], 450.0, log=False)
    assert window.x0 == 0
    assert window.x1 == 100
    assert window.y0 < -200
    assert window.y1 > 450
    assert target_row(450.0, window, 20) in (0, 1)
    assert target_row(10_000.0, window, 20) is None
    assert whole_window([], 450.0, log=False) is None


def test_zoom_keeps_the_centre_and_a_move_keeps_the_width() -> None:
    window = Window(0, 100, 0, 1)
    assert (window.zoomed(0.5).x0, window.zoomed(0.5).x1) == (25, 75)
    assert (window.zoomed(0.5, centre=0).x0, window.zoomed(0.5, centre=0).x1) == (0, 50)
    assert (window.moved(0.1).x0, window.moved(0.1).x1) == (10, 110)


def test_the_log_axis_is_defined_for_negative_returns() -> None:
    values = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    on_axis = scaled(values, log=True)
    assert (np.diff(on_axis) > 0).all()
    assert [unscaled(value, log=True) for value in on_axis] == pytest.approx(values.tolist())


@pytest.mark.parametrize(("low", "high", "most", "ticks"), [(0, 100, 5, [0, 20, 40, 60, 80, 100]), (0, 0, 5, [])])
def test_ticks_are_round_numbers(low: float, high: float, most: int, ticks: list[float]) -> None:
    assert nice_ticks(low, high, most) == ticks


@pytest.mark.parametrize("log", [False, True])
def test_labels_of_the_y_axis_are_ordered(log: bool) -> None:
    window = Window(0, 1, -50, 500, log)
    labels = y_ticks(window, 21)
    assert len(labels) >= 3
    rows = sorted(labels)
    assert [labels[row] for row in rows] == sorted(labels.values(), reverse=True)
