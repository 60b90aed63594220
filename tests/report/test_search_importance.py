"""Importance of axes on made-up results whose answer is known."""

from __future__ import annotations

import math

import numpy as np

from rldsl.report.search_importance import estimate_importance, least_trials


def test_the_axis_that_decides_is_found() -> None:
    rng = np.random.default_rng(0)
    decides, ignored = rng.uniform(size=60), rng.uniform(size=60)
    found = estimate_importance({"ignored": ignored, "decides": decides}, 10 * decides + rng.normal(0, 0.3, 60))
    assert found is not None and list(found.axes) == ["decides", "ignored"]
    assert found.axes["decides"] > 10 * found.axes["ignored"]
    assert found.explained > 0.8 and found.trials == 60


def test_noise_is_not_explained() -> None:
    rng = np.random.default_rng(1)
    found = estimate_importance({"a": rng.uniform(size=60), "b": rng.uniform(size=60)}, rng.normal(size=60))
    assert found is not None and found.explained < 0.2


def test_an_axis_that_is_often_inactive_has_gaps() -> None:
    rng = np.random.default_rng(2)
    agent = rng.integers(0, 2, 80).astype(float)
    only_of_one = np.where(agent == 1, rng.uniform(size=80), math.nan)
    values = np.where(agent == 1, 5 * only_of_one, 0.0)
    found = estimate_importance({"agent": agent, "tau": only_of_one, "noise": rng.uniform(size=80)}, values)
    assert found is not None and found.axes["tau"] > 0.3 and found.axes["noise"] < 0.05


def test_too_few_trials_or_equal_values_give_no_estimate() -> None:
    column = [float(number) for number in range(30)]
    assert estimate_importance({"a": column[:9]}, column[:9]) is None
    assert estimate_importance({"a": column}, [1.0] * 30) is None
    assert least_trials(1) == 10 and least_trials(5) == 20
