"""From an experiment to its trials: in order, one at a time, draws that stay what they are."""

from __future__ import annotations

from itertools import islice

import pytest

from rldsl import PPO, Classic, Experiment, choice, experiment, grid, int_uniform, log_uniform, uniform, zipped
from rldsl.plan.expand import count, expand
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Trial

BASE = experiment("cartpole").env(Classic("CartPole-v1")).agent(PPO(rollout=64)).frames(1e5).seeds(2)


def points(made: Experiment) -> list[tuple[object, ...]]:
    return [tuple(planned.differs.values()) for planned in expand(made)]


def test_an_experiment_without_a_search_is_one_trial() -> None:
    (planned,) = expand(BASE.build())
    assert planned.trial == BASE.build().base()
    assert planned.differs == {}
    assert count(BASE.build()) == 1


def test_the_first_axis_of_a_grid_varies_slowest() -> None:
    made = BASE.search(gamma=grid(0.9, 0.99), epochs=grid(1, 2, 3)).build()
    assert points(made) == [(0.9, 1), (0.9, 2), (0.9, 3), (0.99, 1), (0.99, 2), (0.99, 3)]
    assert count(made) == 6


def test_what_differs_is_what_was_set() -> None:
    for planned in expand(BASE.search(gamma=grid(0.9, 0.99), lam=grid(0.5)).build()):
        assert planned.differs == {"agent.gamma": planned.trial.agent.gamma, "agent.lam": 0.5}


def test_every_draw_is_crossed_with_the_grid() -> None:
    made = BASE.search(gamma=uniform(0.9, 0.99), epochs=grid(1, 2)).random(3).build()
    drawn = [(planned.differs["agent.gamma"], planned.differs["agent.epochs"]) for planned in expand(made)]
    assert count(made) == len(drawn) == 6
    assert [epochs for _, epochs in drawn] == [1, 2] * 3
    assert len({gamma for gamma, _ in drawn}) == 3
    assert all(drawn[i][0] == drawn[i + 1][0] for i in (0, 2, 4))


def test_a_zip_counts_as_one_axis() -> None:
    made = BASE.search(zipped(gamma=grid(0.1, 0.2, 0.3), lam=grid(0.4, 0.5, 0.6)), epochs=grid(1, 2)).build()
    assert count(made) == 6


def drawn(trials: int, seed: int = 0) -> Experiment:
    axes = {"gamma": uniform(0.9, 0.99), "lr": log_uniform(1e-5, 1e-2), "epochs": int_uniform(1, 9)}
    return BASE.search(**axes, normalize_rewards=choice(True, False)).random(trials, seed=seed).build()


def test_draws_are_the_same_each_time() -> None:
    assert points(drawn(10)) == points(drawn(10))
    assert points(drawn(10, seed=1)) != points(drawn(10))


def test_a_draw_does_not_depend_on_how_many_there_are() -> None:
    assert points(drawn(200))[:7] == points(drawn(7))


def test_draws_stay_what_they_are() -> None:
    """A search that is planned again, years later, is the same search."""
    assert points(drawn(1)) == [(0.9308415831873568, 0.0011948853376455954, 7, False)]


def test_draws_fill_their_ranges() -> None:
    made = points(drawn(400))
    gamma, lr, epochs, flag = zip(*made, strict=True)
    assert 0.9 <= min(gamma) < 0.905
    assert 0.985 < max(gamma) <= 0.99
    assert 1e-5 <= min(lr) < 2e-5
    assert 5e-3 < max(lr) <= 1e-2
    assert 0.4 < sum(one < 10**-3.5 for one in lr) / 400 < 0.6, (
        "half of the draws are below the middle of the logarithm"
    )
    assert set(epochs) == set(range(1, 10))
    assert 120 < sum(flag) < 280


def test_a_grid_of_ten_million_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    thousand = grid(*(index / 1000 for index in range(1000)))
    made = BASE.search(gamma=thousand, lam=thousand, epochs=grid(*range(1, 11))).build()
    parsed: list[object] = []
    original = Trial.parse.__func__

    def counted(cls: type[Trial], data: object, root: str) -> Trial:
        parsed.append(data)
        return original(cls, data, root)

    monkeypatch.setattr(Trial, "parse", classmethod(counted))
    plan = make_plan([Overridden(made)])
    assert (plan.trials, plan.sessions) == (10_000_000, 20_000_000)
    first = [row.differs["agent.epochs"] for row in islice(plan.rows(), 3)]
    assert first == [1, 2, 3]
    assert len(parsed) == 3


def test_the_rows_of_a_plan_can_be_walked_again() -> None:
    plan = make_plan([Overridden(drawn(5))])
    assert [row.id for row in plan.rows()] == [row.id for row in plan.rows()]


def test_equal_trials_of_two_experiments_have_one_id() -> None:
    one, other = BASE.named("one").build(), BASE.named("other").search(epochs=grid(10, 11)).build()
    plan = make_plan([Overridden(one), Overridden(other)])
    ids = [row.id for row in plan.rows()]
    assert ids[0] == ids[1] != ids[2]


def test_two_experiments_of_one_name_are_refused() -> None:
    with pytest.raises(SpecError, match=r"called cartpole/ppo \(.*:\d+ and .*:\d+\); give one"):
        make_plan([Overridden(BASE.build()), Overridden(BASE.frames(2e5).build())])


def test_no_plan_lists_what_nevergrad_will_ask() -> None:
    made = BASE.search(gamma=uniform(0.9, 0.99)).nevergrad(trials=7).build()
    (part,) = make_plan([Overridden(made)]).parts
    assert part.adaptive
    assert part.trials == 7
    assert list(expand(made)) == []
