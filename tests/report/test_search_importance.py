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


def test_an_inactive_axis_does_not_take_the_importance_of_the_choice_that_it_depends_on() -> None:
    rng = np.random.default_rng(2)
    agent = rng.integers(0, 2, 80).astype(float)
    only_of_one = np.where(agent == 1, rng.uniform(size=80), math.nan)
    columns = {"agent": agent, "tau": only_of_one, "noise": rng.uniform(size=80)}
    of_the_agent = estimate_importance(columns, 10 * agent + rng.normal(0, 0.5, 80))
    assert of_the_agent is not None and of_the_agent.axes["agent"] > 1 and of_the_agent.axes["tau"] < 0.1
    of_the_axis = estimate_importance(columns, np.where(agent == 1, 20 * only_of_one - 10, 0.0))
    assert of_the_axis is not None and of_the_axis.axes["tau"] > 0.5 and of_the_axis.axes["noise"] < 0.1
    assert estimate_importance({**columns, "never": [math.nan] * 80}, agent) is not None


def test_too_few_trials_or_equal_values_give_no_estimate() -> None:
    column = [float(number) for number in range(30)]
    assert estimate_importance({"a": column[:9]}, column[:9]) is None
    assert estimate_importance({"a": column}, [1.0] * 30) is None
    assert least_trials(1) == 10 and least_trials(5) == 20
