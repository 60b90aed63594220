"""Suggested points: a pure function of the spec and the journal, extended by more trials, told to nobody else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from rldsl import (
    PPO,
    SAC,
    MuJoCo,
    SpecError,
    choice,
    experiment,
    grid,
    int_uniform,
    log_uniform,
    logit_uniform,
    uniform,
    when,
    zipped,
)
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.plan.expand import count, expand, trial_of
from rldsl.search.identity import search_id
from rldsl.search.suggest import suggester
from rldsl.spec.experiment import Experiment
from rldsl.store.errors import StoreError

HOPPER = experiment("hopper").env(MuJoCo("Hopper-v5", num_envs=4)).frames(1e5)
AXES = HOPPER.agent(PPO(rollout=64)).search(
    zipped(clip=choice(0.1, 0.2), entropy=choice(0.0, 0.01)),
    lr=log_uniform(1e-5, 1e-2),
    gamma=logit_uniform(0.9, 0.999),
    lam=uniform(0.8, 0.99),
    epochs=int_uniform(1, 4),
    max_grad_norm=choice(0.5, 1.0, 2.0, ordered=True),
)
AGENTS = HOPPER.search(
    when("agent", "sac", tau=log_uniform(1e-3, 1e-1), lr=log_uniform(1e-4, 1e-3)),
    when("agent", "ppo", lam=uniform(0.9, 0.99), lr=log_uniform(1e-5, 1e-4)),
    agent=choice(SAC(), PPO()),
    gamma=uniform(0.9, 0.99),
)
OPTIMIZERS = ("NGOpt", "OnePlusOne", "TBPSA", "CMA", "TwoPointsDE", "PortfolioDiscreteOnePlusOne")

TRIALS = 9
METHODS: dict[str, Callable[[ExperimentBuilder], ExperimentBuilder]] = {
    "random": lambda axes: axes.random(TRIALS),
    "sobol": lambda axes: axes.sobol(TRIALS),
    "asha": lambda axes: axes.asha(TRIALS),
    "asha with sobol": lambda axes: axes.asha(TRIALS, sampler="sobol"),
    **{name: lambda axes, name=name: axes.nevergrad(name, trials=TRIALS, parallel=3) for name in OPTIMIZERS},
}


class Driver:
    """Runs a search on a made-up objective, with trials in flight that end in random order and sometimes fail."""

    def __init__(self, made: Experiment, parallel: int = 3, restart: bool = False) -> None:
        self.made, self.parallel, self.restart = made, parallel, restart
        self.events: list[dict[str, Any]] = []
        self.stream = random.Random(0)

    def run(self) -> list[dict[str, Any]]:
        suggest, running, total = suggester(self.made), [], 0
        while True:
            if self.restart:
                suggest = suggester(self.made)
            point = suggest.point(self.events) if len(running) < self.parallel else None
            if point is not None:
                point = json.loads(json.dumps(point))
                self.events.append({"event": "suggested", "trial": total, "point": point, "id": "-"})
                self.events.append({"event": "started", "trial": total, "rung": 0, "seeds": [7]})
                running.append(total)
                total += 1
            elif running:
                self.end(running.pop(self.stream.randrange(len(running))))
            else:
                return self.points()

    def end(self, trial: int) -> None:
        if self.stream.random() < 0.2:
            self.events.append({"event": "failed", "trial": trial, "rung": 0, "reason": "diverged"})
            return
        point = self.points()[trial]
        value = -abs(point["agent.gamma"] - 0.95) - abs(point["agent.lr"] - 1e-3)
        self.events.append({"event": "finished", "trial": trial, "rung": 0, "values": {"7": value}, "seconds": 1.0})

    def points(self) -> list[dict[str, Any]]:
        return [event["point"] for event in self.events if event["event"] == "suggested"]


@pytest.mark.parametrize(
    ("axes", "method"),
    [*((AXES, method) for method in METHODS), (AGENTS, "random"), (AGENTS, "sobol"), (AGENTS, "NGOpt")],
)
def test_a_search_restarted_at_every_step_suggests_the_same_points(axes: ExperimentBuilder, method: str) -> None:
    made = METHODS[method](axes).build()
    undisturbed = Driver(made).run()
    assert len(undisturbed) == TRIALS
    assert Driver(made, restart=True).run() == undisturbed
    for point in undisturbed:
        trial_of(made, point)  # valid


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_depends_on_its_seed_and_on_the_results(name: str) -> None:
    made = [AXES.nevergrad(name, trials=12, parallel=3, seed=seed).build() for seed in (0, 1)]
    driver, other = Driver(made[0]), Driver(made[1])
    assert driver.run() != other.run()
    opposite = Driver(AXES.nevergrad(name, trials=40, parallel=3).objective(maximize=False).build())
    assert Driver(AXES.nevergrad(name, trials=40, parallel=3).build()).run() != opposite.run()


def test_events_change_nothing_when_they_are_repeated_or_asked_about_twice() -> None:
    made = AXES.nevergrad("CMA", trials=TRIALS, parallel=3).build()
    driver = Driver(made)
    points = driver.run()
    suggest, seen = suggester(made), []
    for event in driver.events:
        suggest.point(seen)  # asked before the result is known, and never run
        seen += [event, event]
        suggest.point(seen)
    assert suggest.point(seen) is None
    assert [event["point"] for event in seen if event["event"] == "suggested"][::2] == points
    for cut in range(len(driver.events)):
        if driver.events[cut]["event"] == "suggested":
            assert suggester(made).point(driver.events[:cut]) == driver.events[cut]["point"]


def test_a_failure_is_told_as_the_worst_score_so_far() -> None:
    made = AXES.nevergrad("OnePlusOne", trials=20, parallel=1).build()

    def after(*ends: dict[str, Any]) -> dict[str, Any]:
        events: list[dict[str, Any]] = []
        suggest = suggester(made)
        for trial, end in enumerate(ends):
            events.append({"event": "suggested", "trial": trial, "point": suggest.point(events)})
            events.append({"trial": trial, "rung": 0, **end})
        return suggest.point(events)

    good, bad, failed = (
        {"event": "finished", "values": {"7": 3.0}},
        {"event": "finished", "values": {"7": -2.0}},
        {"event": "failed", "reason": "diverged"},
    )
    without_value = {"event": "finished", "values": {"7": None}}
    assert after(good, bad, failed) == after(good, bad, bad) != after(good, bad, good)
    assert after(good, bad, without_value) == after(good, bad, bad)
    assert after(failed, good) is not None  # left out: there is no worst score yet


def test_a_journal_of_another_version_is_refused() -> None:
    made = AXES.nevergrad(trials=3).build()
    event = {"event": "suggested", "trial": 0, "point": {"agent.gamma": 0.5}, "id": "-"}
    with pytest.raises(StoreError, match="trial 0 of this search is not the one that Nevergrad suggests now"):
        suggester(made).point([event])


def test_axes_with_a_single_value_leave_nothing_to_choose() -> None:
    made = HOPPER.agent(PPO()).search(gamma=choice(0.9)).nevergrad(trials=3).build()
    with pytest.raises(SpecError, match="nevergrad has nothing to choose"):
        suggester(made).point([])


@pytest.mark.parametrize("method", ["random", "sobol", "asha", "asha with sobol"])
def test_samples_are_those_of_the_plan_and_do_not_depend_on_their_number(method: str) -> None:
    made = METHODS[method](AGENTS).build()
    points = Driver(made).run()
    assert points == [planned.differs for planned in expand(made)]
    longer = made.with_(search=made.search.with_(method=made.search.method.with_(trials=80)))
    assert Driver(longer).run()[:TRIALS] == points
    assert search_id(longer) == search_id(made)
    other = made.with_(search=made.search.with_(method=made.search.method.with_(seed=1)))
    assert Driver(other).run() != points
    assert search_id(other) != search_id(made)


def test_a_grid_is_suggested_in_its_order() -> None:
    made = HOPPER.agent(PPO()).search(gamma=grid(0.9, 0.99), lr=grid(1e-3, 1e-4)).build()
    points = [(point["agent.gamma"], point["agent.lr"]) for point in Driver(made).run()]
    assert points == [(0.9, 1e-3), (0.9, 1e-4), (0.99, 1e-3), (0.99, 1e-4)]


def test_a_sampled_search_crosses_its_grid_and_the_others_choose_from_it() -> None:
    axes = HOPPER.agent(PPO()).search(lr=log_uniform(1e-4, 1e-3), gamma=grid(0.9, 0.99), epochs=grid(1, 2, 3))
    assert count(axes.random(2).build()) == len(Driver(axes.random(2).build()).run()) == 12
    assert count(axes.sobol(2).build()) == 12
    for method in (axes.asha(20), axes.nevergrad("RandomSearch", trials=20)):
        points = Driver(method.build()).run()
        assert len(points) == 20
        assert {point["agent.gamma"] for point in points} == {0.9, 0.99}
        assert {point["agent.epochs"] for point in points} == {1, 2, 3}


def test_the_id_of_a_search_is_that_of_its_settings() -> None:
    made = AXES.nevergrad(trials=12).build()
    ids = {
        search_id(one.build())
        for one in (
            AXES.nevergrad(trials=12),
            AXES.nevergrad(trials=13),
            AXES.nevergrad(trials=12, parallel=1),
            AXES.nevergrad(trials=12).objective("median"),
            AXES.nevergrad(trials=12).frames(2e5),
            AXES.nevergrad(trials=12).seeds(2),
            AXES.asha(TRIALS),
            AXES.asha(12, seeds=(1, 2)),
        )
    }
    assert len(ids) == 8
    assert search_id(AXES.nevergrad(trials=12, max_failures=3).named("other").build()) == search_id(made) in ids


def test_a_grid_is_searched_point_by_point_on_search_seeds() -> None:
    ppo = HOPPER.agent(PPO(rollout=64)).seeds(2).search(gamma=grid(0.9, 0.99), lam=grid(0.9, 0.95, 1.0))
    trained, searched = ppo.build(), ppo.grid().build()
    assert (trained.sampled, searched.sampled) == (False, True)
    assert (trained.name, searched.name) == ("hopper/ppo-grid", "hopper/ppo-search")
    assert not set(trained.session_seeds) & set(searched.session_seeds)
    assert [planned.differs for planned in expand(searched)] == [planned.differs for planned in expand(trained)]
    events: list[dict[str, Any]] = []
    while (point := suggester(searched).point(events)) is not None:
        events.append({"event": "suggested", "trial": len(events), "point": point})
    assert [event["point"] for event in events] == [planned.differs for planned in expand(trained)]


def test_only_grids_are_searched_point_by_point() -> None:
    with pytest.raises(SpecError, match=r"agent.gamma is sampled: choose a method with \.random"):
        HOPPER.agent(PPO(rollout=64)).search(gamma=uniform(0.9, 0.99)).grid()
