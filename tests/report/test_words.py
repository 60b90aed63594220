"""Numbers, durations and settings as text."""

from __future__ import annotations

from typing import Any

import pytest

from rldsl.report.words import amount, count, duration, time_ticks, value


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (12, "12"), (999, "999"), (12_500, "12.5k"), (4e6, "4M"), (-2e9, "-2G"), (0.12345, "0.1235")],
)
def test_amount(number: float, text: str) -> None:
    assert amount(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "0s"), (59, "59s"), (60, "1m 00s"), (3599.6, "1h 00m"), (3700, "1h 01m"), (200_000, "2d 07h")],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (3, "3"),
        (None, "None"),
        ({"kind": "ppo", "gamma": 0.99}, "ppo"),
        ({"kind": "classic", "id": "CartPole-v1"}, "CartPole-v1"),
        ({"no": "kind"}, "{'no': 'kind'}"),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 37 + "..."),
    ],
)
def test_value(setting: Any, text: str) -> None:
    assert value(setting) == text


@pytest.mark.parametrize("seconds", [0.02, 0.7, 3.2, 9.0, 61.0, 200.0, 3700.0, 90_000.0, 400_000.0, 3e7])
def test_the_labels_of_a_time_axis_are_never_the_same(seconds: float) -> None:
    ticks = time_ticks(-seconds / 100, seconds)
    assert 2 <= len(ticks) <= 10 and len(set(ticks.values())) == len(ticks)
    assert min(ticks) == 0 and max(ticks) <= seconds


def test_the_labels_of_a_time_axis_are_round_times() -> None:
    assert list(time_ticks(0, 3.2).values()) == ["0s", "0.5s", "1s", "1.5s", "2s", "2.5s", "3s"]
    assert list(time_ticks(0, 200).values()) == ["0s", "30s", "1m 00s", "1m 30s", "2m 00s", "2m 30s", "3m 00s"]


def test_count() -> None:
    assert [count(number, "trial") for number in (0, 1, 2, 1200)] == ["0 trials", "1 trial", "2 trials", "1,200 trials"]
