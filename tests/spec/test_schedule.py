"""Numbers and schedules: what a field takes, how it is kept, what JSON holds."""

from __future__ import annotations

import pytest

from rldsl import PPO, Constant, Cosine, Exponential, Linear, SpecError, Steps


def test_a_number_stays_a_number() -> None:
    lr = PPO(lr=1).lr
    assert lr == 1.0
    assert type(lr) is float


def test_a_constant_schedule_is_kept_as_its_number() -> None:
    assert PPO(lr=Constant(3e-4)) == PPO(lr=3e-4)
    assert PPO(lr={"kind": "constant", "value": 3e-4}).data()["lr"] == 3e-4


@pytest.mark.parametrize(
    ("schedule", "data"),
    [
        (Linear(1e-3), {"kind": "linear", "start": 1e-3, "end": 0.0, "over": None}),
        (Linear(1e-3, 1e-4, over=1e6), {"kind": "linear", "start": 1e-3, "end": 1e-4, "over": 1_000_000}),
        (Linear(1.0, 0.05, over=0.1), {"kind": "linear", "start": 1.0, "end": 0.05, "over": 0.1}),
        (Cosine(1, 0.5), {"kind": "cosine", "start": 1.0, "end": 0.5, "over": None}),
        (Exponential(1e-2, 1e-4), {"kind": "exponential", "start": 1e-2, "end": 1e-4, "over": None}),
        (Steps((10, 20), (3, 2, 1)), {"kind": "steps", "boundaries": [10, 20], "values": [3.0, 2.0, 1.0]}),
    ],
)
def test_a_schedule_and_its_json_are_the_same_setting(schedule: object, data: dict[str, object]) -> None:
    agent = PPO(lr=schedule)
    assert agent.data()["lr"] == data
    assert PPO(lr=data) == agent
    assert PPO.parse(agent.data()).lr == schedule


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (-1e-4, r"PPO\.lr should be at least 0, got -0\.0001"),
        (float("inf"), r"PPO\.lr should be a finite number, got inf"),
        (True, r"PPO\.lr should be a number or a schedule, got True"),
        ("linear", r"PPO\.lr should be a number or a schedule, got 'linear'"),
        (None, r"PPO\.lr should be a number or a schedule, got None"),
        ({"kind": "linea", "start": 1}, r"PPO\.lr names no known schedule \(did you mean linear\?\)"),
        ({"kind": "linear", "strat": 1}, r"PPO\.lr has no field 'strat'; did you mean start"),
        (Linear(1e-3, -1e-4), r"PPO\.lr should be at least 0"),
        (Cosine(-1e-3), r"PPO\.lr should be at least 0"),
        (Steps((5,), (1, -1)), r"PPO\.lr should be at least 0"),
    ],
)
def test_every_value_that_a_schedule_takes_is_in_the_domain_of_its_field(given: object, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        PPO(lr=given)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Exponential(1.0, 0.0), r"Exponential\.end should be greater than 0, got 0"),
        (lambda: Exponential(0.0, 1.0), r"Exponential\.start should be greater than 0, got 0"),
        (lambda: Linear(1.0, over=0), r"Linear\.over should be greater than 0, got 0"),
        (lambda: Linear(1.0, over="soon"), r"Linear\.over should be a whole number, got 'soon'"),
        (lambda: Linear(1.0, over=2.5), r"Linear\.over should be a whole number, got 2\.5"),
        (lambda: Steps((1, 2), (1, 2)), "Steps needs one value more than boundaries, got 2 and 2"),
        (lambda: Steps((2, 1), (1, 2, 3)), r"Steps\.boundaries should be increasing, got \[2, 1\]"),
        (lambda: Steps((2, 2), (1, 2, 3)), r"Steps\.boundaries should be increasing, got \[2, 2\]"),
        (lambda: Steps((), (1,)), r"Steps\.boundaries .*at least 1 item"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(make: object, sentence: str) -> None:
    with pytest.raises(SpecError, match=sentence):
        make()


def test_none_means_as_the_other_where_a_field_says_so() -> None:
    assert PPO(critic_lr=None).critic_lr is None
    assert PPO(critic_lr=Linear(1e-3)).critic_lr == Linear(1e-3)
    with pytest.raises(SpecError, match=r"PPO\.critic_lr should be at least 0"):
        PPO(critic_lr=-1)
