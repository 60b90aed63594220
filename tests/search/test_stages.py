"""Staged search: the ranges of the narrow stage, its seeds, and that it can be resumed."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from pydantic import TypeAdapter

from rldsl import PPO, SAC, SpecError, choice, grid, int_uniform, log_uniform, logit_uniform, uniform, when, zipped
from rldsl.plan.expand import expand
from rldsl.plan.search_cost import search_cost
from rldsl.search.history import History
from rldsl.search.identity import search_id
from rldsl.search.leaderboard import best_trials
from rldsl.search.stages import narrow_experiment
from rldsl.spec.experiment import Experiment
from rldsl.spec.search import Choice, Interval
from rldsl.store.plan_parts import SearchCost
from tests.search.recorded import CARTPOLE, asha, linear, record


def staged(trials: int = 12, **axes: Any) -> Experiment:
    search = CARTPOLE.search(**(axes or {"gamma": uniform(0.9, 0.99), "lr": log_uniform(1e-4, 1e-2)}))
    return search.asha(trials=trials, grace=1e4).narrow(trials=8, seeds=4, best=3, margin=0.1).validate(2).build()


def axes_of(experiment: Experiment) -> dict[str, Any]:
    assert experiment.search is not None
    return {path: one.axis for one in experiment.search.dimensions for path in one.paths}


def test_later_stages_do_not_change_the_identity_of_the_first() -> None:
    assert search_id(staged()) == search_id(asha(12))


def test_ranges_are_drawn_around_the_best_on_the_scale_of_the_axis() -> None:
    searched = staged()
    history = History.of(record(searched))
    best = [row.point for row in best_trials(history, searched, 3)]
    gamma, lr = axes_of(narrow_experiment(searched, history)).values()
    assert math.isclose(gamma.low, min(point["agent.gamma"] for point in best) - 0.009)
    assert gamma.high == 0.99  # clipped
    factor = 10 ** (0.1 * 2)  # a tenth of two decades
    assert math.isclose(lr.low, max(1e-4, min(point["agent.lr"] for point in best) / factor))
    assert math.isclose(lr.high, min(1e-2, max(point["agent.lr"] for point in best) * factor))


def test_the_narrow_stage_is_a_search_of_its_own_on_other_seeds() -> None:
    searched = staged()
    narrow = narrow_experiment(searched, History.of(record(searched)))
    assert narrow.name == "cartpole/ppo-search-narrow"
    assert len(list(expand(narrow))) == 8
    seeds = set(narrow.session_seeds)
    assert len(seeds) == 4 and min(seeds) > max(searched.session_seeds)
    assert not seeds & set(searched.seeds)
    assert narrow.search is not None and narrow.search.narrow is None and narrow.search.validate_best == 2


def test_the_same_journal_gives_the_same_stage() -> None:
    searched = staged()
    journal = record(searched)
    first, again = (narrow_experiment(searched, History.of(journal)) for _ in range(2))
    assert first == again and search_id(first) == search_id(again)
    assert [one.trial.id for one in expand(first)] == [one.trial.id for one in expand(again)]


@pytest.mark.parametrize("seed", range(20))
def test_narrow_ranges_stay_inside_the_original_ones_and_contain_the_best(seed: int) -> None:
    rng = random.Random(seed)
    searched = staged(
        gamma=logit_uniform(0.9, 0.999), lr=log_uniform(1e-5, 1e-1), epochs=int_uniform(2, 4), lam=uniform(0.5, 1.0)
    )
    history = History.of(record(searched, lambda point, frames, seed: rng.random()))
    best = [row.point for row in best_trials(history, searched, 3)]
    narrow = axes_of(narrow_experiment(searched, history))
    for path, axis in axes_of(searched).items():
        assert isinstance(narrow[path], Interval) and type(narrow[path]) is type(axis)
        assert axis.low <= narrow[path].low < narrow[path].high <= axis.high
        assert all(narrow[path].low <= point[path] <= narrow[path].high for point in best)


def test_choices_and_grids_keep_the_values_of_the_best() -> None:
    def value(point: Any, frames: int, seed: int) -> float:
        return float(point["agent.minibatch"] == 128) + 0.5 * (point["agent.clip"] == 0.3) + frames * 1e-9

    axes = (zipped(clip=choice(0.1, 0.2, 0.3), entropy=choice(0.0, 0.01, 0.02)),)
    search = CARTPOLE.search(*axes, minibatch=grid(64, 128), gamma=uniform(0.9, 0.99)).asha(trials=40, grace=1e4)
    searched = search.narrow(best=2).build()
    narrow = axes_of(narrow_experiment(searched, History.of(record(searched, value))))
    assert narrow["agent.minibatch"] == Choice((128,))
    assert narrow["agent.clip"] == Choice(([0.3, 0.02],))


def test_axes_of_an_agent_that_is_not_among_the_best_are_dropped() -> None:
    search = CARTPOLE.search(
        when("agent", "sac", tau=log_uniform(1e-3, 1e-1)),
        when("agent", "ppo", lam=uniform(0.9, 0.99)),
        agent=choice(PPO(), SAC()),
    ).asha(trials=12, grace=1e4)
    searched = search.narrow(best=3).build()
    journal = record(searched, lambda point, frames, seed: float(point["agent"]["kind"] == "ppo"))
    narrow = narrow_experiment(searched, History.of(journal))
    assert axes_of(narrow).keys() == {"agent", "agent.lam"}
    assert {one.trial.agent.kind for one in expand(narrow)} == {"ppo"}


def test_without_a_value_there_is_nothing_to_search_around() -> None:
    searched = staged()
    with pytest.raises(SpecError, match="no trial has a value"):
        narrow_experiment(searched, History.of(record(searched, linear, fails=range(12))))


def test_a_grid_has_no_later_stages() -> None:
    with pytest.raises(SpecError, match="a grid has no best trials"):
        CARTPOLE.search(gamma=grid(0.9, 0.99)).narrow()
    with pytest.raises(SpecError, match=r"\.validate needs axes"):
        CARTPOLE.validate(3)


def test_the_cost_of_every_stage_is_known_in_advance() -> None:
    cost = search_cost(staged())
    assert cost is not None
    narrow, validation = cost.stages
    assert (narrow.trials, narrow.seeds, narrow.frames) == (8, 4, 8 * 4 * 90_000)
    assert (validation.trials, validation.seeds, validation.frames) == (3, 2, 3 * 2 * 90_000)
    searched = staged()
    made = narrow_experiment(searched, History.of(record(searched)))
    assert narrow.frames == len(list(expand(made))) * len(list(made.session_seeds)) * made.budget.frames
    assert TypeAdapter(SearchCost).validate_python(json.loads(json.dumps(cost.data()))) == cost  # in a saved plan
