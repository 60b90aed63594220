"""Comparisons of results: differences, verdicts, which trials belong together, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rldsl.maths.statistics import difference_interval, interval_of_mean
from rldsl.report.compare import compare, summary
from rldsl.report.learning_curve import Curve
from rldsl.report.result import Result, SessionResult
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError

LOW, HIGH = [10.0, 11.0, 12.0, 13.0], [20.0, 21.0, 22.0, 23.0]


def result(scores: Sequence[float | None], experiment: str = "cartpole/ppo", **changed: Any) -> Result:
    spec = {"env": {"kind": "classic", "id": "CartPole-v1"}, "budget": {"frames": 1000}}
    sessions = [
        SessionResult(seed, score, 1000, 1.0, Curve.of([500, 1000], [0.0, score])) for seed, score in enumerate(scores)
    ]
    return replace(Result(experiment, "0123456789ab", spec, 15.0, sessions), **changed)


def test_a_comparison_by_hand() -> None:
    (one,) = compare([result(LOW)], [result(HIGH)]).comparisons
    assert one.difference == 10.0
    assert one.interval == difference_interval(LOW, HIGH)
    assert one.improvement == 1.0
    assert one.verdict == "better"
    data = one.data()
    assert data["a"]["seeds"] == {"0": 10.0, "1": 11.0, "2": 12.0, "3": 13.0}
    assert (data["a"]["n"], data["b"]["score"]) == (4, 21.5)
    assert data["b"]["interval_95"] == list(interval_of_mean(HIGH))


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (HIGH, LOW, "worse"),
        (LOW, LOW, "unclear"),
        (LOW, [0.0, 10.0, 20.0, 30.0], "unclear"),
        ([500.0] * 4, [9.0] * 4, "worse"),  # no interval of the difference: nothing varies
        ([9.0] * 4, [500.0] * 4, "better"),
        ([500.0] * 4, [500.0] * 4, "unclear"),
        ([500.0] * 2, [9.0] * 2, "unclear"),  # too few seeds
        ([500.0] * 4, [9.0], "unclear"),
    ],
)
def test_verdicts(a: list[float], b: list[float], verdict: str) -> None:
    compared = compare([result(a)], [result(b)])
    assert [one.verdict for one in compared.comparisons] == [verdict]
    assert bool(compared.worse) == (verdict == "worse")


def test_verdicts_of_many_comparisons_are_rarely_wrong() -> None:
    """A and B have the same distribution: without a correction, one of twenty comparisons is often called different."""
    rng = np.random.default_rng(0)
    alarms = uncorrected = 0
    for _ in range(100):
        a, b = ([result(rng.normal(size=4).tolist(), f"cartpole/{i}") for i in range(20)] for _ in range(2))
        comparisons = compare(a, b).comparisons
        alarms += any(one.verdict != "unclear" for one in comparisons)
        uncorrected += any(not one.interval.low < 0 < one.interval.high for one in comparisons)
    assert alarms <= 10 < 40 < uncorrected


def test_below_a_difference() -> None:
    compared = compare([result(HIGH)], [result(LOW)])
    assert len(compared.below(-9.0)) == 1
    assert compared.below(-11.0) == []


def test_single_trials_are_compared_whatever_their_names() -> None:
    (one,) = compare([result(LOW, "cartpole/ppo")], [result(HIGH, "cartpole/a2c", trial="ba9876543210")]).comparisons
    assert one.name == "cartpole/ppo and cartpole/a2c"


def test_trials_belong_together_by_name() -> None:
    a = [result(LOW, "cartpole/ppo"), result(LOW, "cartpole/a2c"), result(LOW, "cartpole/sac")]
    b = [result(HIGH, "cartpole/dqn"), result(HIGH, "cartpole/a2c", trial="ba9876543210"), result(LOW, "cartpole/sac")]
    compared = compare(a, b)
    assert [one.name for one in compared.comparisons] == ["cartpole/a2c", "cartpole/sac"]
    assert (compared.only_a, compared.only_b) == (["cartpole/ppo"], ["cartpole/dqn"])
    assert summary(compared) == "2 comparisons: 1 better, 1 unclear"


def test_trials_of_a_grid_belong_together_by_their_settings() -> None:
    a = [result(LOW, trial=id) for id in ("1" * 12, "2" * 12, "3" * 12)]
    b = [result(HIGH, trial=id) for id in ("3" * 12, "2" * 12, "4" * 12)]
    comparisons = compare(a, b).comparisons
    assert [(one.a.trial[0], one.b.trial[0]) for one in comparisons] == [("2", "2"), ("3", "3")]


def test_sessions_that_are_not_done_are_left_out() -> None:
    running = result([*LOW, 1000.0])
    running = replace(running, sessions=[*running.sessions[:4], replace(running.sessions[4], state="running")])
    (one,) = compare([running], [result(HIGH)]).comparisons
    assert one.a.scores == LOW


def test_other_budgets_are_noted() -> None:
    spec = {"env": {"id": "CartPole-v1"}, "budget": {"frames": 4000}}
    (one,) = compare([result(LOW)], [result(HIGH, spec=spec)]).comparisons
    assert one.note == "cartpole/ppo: A was trained for 1k frames, B for 4k"
    (one,) = compare([result(LOW)], [result(HIGH)]).comparisons
    assert one.note == ""


def test_curves_of_both_are_drawn() -> None:
    (one,) = compare([result(LOW)], [result(HIGH)]).comparisons
    panel = one.panel("before", "after")
    assert [(line.label, line.last) for line in panel.lines] == [("before", 11.5), ("after", 21.5)]
    assert panel.target == 15.0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            result(LOW),
            result(LOW, "pendulum/ppo", spec={"env": {"id": "Pendulum-v1"}}),
            "cartpole/ppo is of CartPole-v1 and pendulum/ppo of Pendulum-v1",
        ),
        (result(LOW), result(LOW, metric="eval_return"), "score of A is episode_return_ma and that of B eval_return"),
        (result(LOW), result([1.0, None]), "cartpole/ppo in B has no score: no episode ended with seed 1"),
        (result([]), result(LOW), "no session of cartpole/ppo in A is done"),
    ],
)
def test_what_cannot_be_compared(a: Result, b: Result, message: str) -> None:
    with pytest.raises((SpecError, StoreError), match=message):
        compare([a], [b])


def test_nothing_in_common() -> None:
    with pytest.raises(SpecError, match=r"no experiment in common: A has cartpole/ppo, B has x, y"):
        compare([result(LOW)], [result(LOW, "x"), result(LOW, "y")])


def test_an_experiment_with_several_trials_is_named_with_its_trials() -> None:
    trials = [result(HIGH, trial="aaaaaaaaaaaa"), result(HIGH, trial="bbbbbbbbbbbb")]
    words = r"cartpole/ppo in B has 2 trials: name one of them \(aaaaaaaaaaaa, bbbbbbbbbbbb\), or FILE:EXPERIMENT"
    for a in (result(LOW, "cartpole/random"), result(LOW)):
        with pytest.raises(SpecError, match=words):
            compare([a], trials)
