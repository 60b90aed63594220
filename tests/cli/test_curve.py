"""Curves in the terminal: where the dots are, and what the axes say."""

from __future__ import annotations

from rldsl.cli.curve import plot

EMPTY = "\u2800"


def test_a_line_rises_from_the_lower_left_to_the_upper_right() -> None:
    lines = plot([0, 50_000, 100_000], [-10, 0, 10], width=20, height=5)
    assert len(lines) == 7
    drawn = [line.partition("│")[2] for line in lines[:5]]
    assert all(len(line) == 20 for line in drawn)
    columns = [min(at for at, sign in enumerate(line) if sign != EMPTY) for line in drawn]
    assert columns == sorted(columns, reverse=True) and columns[-1] == 0
    assert drawn[0][-1] != EMPTY and drawn[-1][0] != EMPTY
    assert lines[0].startswith(" 10 │") and lines[4].startswith("-10 │")
    assert lines[6].split() == ["0", "100k", "frames"] and len(lines[6]) == len(lines[0])


def test_a_constant_curve_is_one_straight_line() -> None:
    drawn = [line.partition("│")[2] for line in plot([1, 2, 3], [7.0, 7.0, 7.0], width=10, height=5)[:5]]
    used = [line for line in drawn if set(line) != {EMPTY}]
    assert len(used) == 1 and len(set(used[0])) == 1


def test_a_single_point_is_a_dot() -> None:
    assert sum(sign != EMPTY for line in plot([5], [1.0], 10, 4)[:4] for sign in line.partition("│")[2]) == 1
