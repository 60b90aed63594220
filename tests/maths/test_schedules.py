"""Schedules by hand, at both ends and beyond."""

from collections.abc import Callable

import pytest

from rldsl import DQN, SAC, CrossQ, Linear
from rldsl.maths import schedules


@pytest.mark.parametrize("schedule", [schedules.linear, schedules.cosine, schedules.exponential])
def test_ends_are_exact_and_progress_is_clamped(schedule: Callable[[float, float, float], float]) -> None:
    assert [schedule(3e-4, 1e-5, p) for p in (-1.0, 0.0, 1.0, 2.0)] == [3e-4, 3e-4, 1e-5, 1e-5]


def test_between_the_ends() -> None:
    assert schedules.linear(1.0, 0.0, 0.25) == 0.75
    assert schedules.cosine(1.0, 0.0, 0.25) == pytest.approx((1 + 2**-0.5) / 2)  # cos(pi / 4) = 1 / sqrt 2
    assert schedules.exponential(1.0, 0.01, 0.5) == pytest.approx(0.1)


def test_steps_change_at_their_boundaries() -> None:
    got = [schedules.steps([0.5, 0.75], [3.0, 2.0, 1.0], p) for p in (-1.0, 0.49, 0.5, 0.74, 0.75, 2.0)]
    assert got == [3.0, 3.0, 2.0, 2.0, 1.0, 1.0]
    assert schedules.steps([], [7.0], 0.3) == 7.0


def test_impossible_schedules_are_refused() -> None:
    with pytest.raises(ValueError, match="2 boundaries need 3 values, not 2"):
        schedules.steps([0.1, 0.2], [1.0, 2.0], 0.0)
    with pytest.raises(ValueError, match="must ascend"):
        schedules.steps([0.2, 0.1], [1.0, 2.0, 3.0], 0.0)
    with pytest.raises(ValueError, match="between positive values"):
        schedules.exponential(1.0, 0.0, 0.5)


def test_a_change_takes_the_budget_a_fraction_of_it_or_a_number_of_frames() -> None:
    for over, frames, expected in (
        (None, 1000, 0.95),
        (0.1, 1000, 0.5),
        (0.1, 2000, 0.75),
        (200, 1000, 0.75),
        (1, 9, 0),
    ):
        rate = Linear(1.0, 0.0, over=over)
        assert schedules.value_at(rate, 50, frames) == pytest.approx(expected)


def test_the_default_epsilon_of_dqn_falls_over_a_tenth_of_the_budget() -> None:
    got = [schedules.value_at(DQN().epsilon, frame, 100_000) for frame in (0, 5_000, 10_000, 99_999)]
    assert got == pytest.approx([1.0, 0.525, 0.05, 0.05])


@pytest.mark.parametrize("agent", [SAC(), CrossQ()])
def test_the_default_buffer_of_sac_and_crossq_holds_a_million(agent: SAC | CrossQ) -> None:
    assert agent.buffer == 1_000_000
