"""Builders: as a person writes them, immutable, named, complete."""

from __future__ import annotations

import dataclasses

import pytest

from rldsl import PPO, Classic, MuJoCo, Random, Slurm, SpecError, experiment, grid, log_uniform, uniform
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.spec.budget import Seeds
from rldsl.spec.search import Asha, Exhaustive, LogUniform, Nevergrad, RandomSearch, Uniform

CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1"))


def test_the_hopper_example_builds() -> None:
    hopper = experiment("hopper").env(MuJoCo("Hopper-v5", num_envs=16)).seeds(4).log_every(1e4).target(2000)
    ppo = hopper.agent(PPO(gamma=0.991, lam=0.95, lr=3e-4, entropy=0.005)).frames(4e6)
    search = ppo.search(gamma=uniform(0.98, 0.999), lam=uniform(0.9, 0.98), lr=log_uniform(1e-4, 1e-3)).asha(
        trials=16, grace=1e5, eta=3
    )

    built = ppo.build()
    assert built.name == "hopper/ppo"
    assert built.agent == PPO(gamma=0.991, lam=0.95, lr=3e-4, entropy=0.005)
    assert built.env == MuJoCo("Hopper-v5", num_envs=16)
    assert (built.budget.frames, built.budget.log_every) == (4_000_000, 10_000)
    assert list(built.seeds) == [0, 1, 2, 3]
    assert built.target.score == 2000
    assert built.search is None

    searched = search.build()
    assert searched.name == "hopper/ppo-search"
    assert searched.search.method == Asha(16, grace=100_000, eta=3)
    axes = {one.paths: one.axis for one in searched.search.dimensions}
    assert axes == {
        ("agent.gamma",): Uniform(0.98, 0.999),
        ("agent.lam",): Uniform(0.9, 0.98),
        ("agent.lr",): LogUniform(1e-4, 1e-3),
    }
    assert searched.base() == built.base()


def hook(point: object) -> None:
    """What `.on_log` and `.on_end` take."""


def calls() -> list[tuple[str, object]]:
    base = CARTPOLE.agent(PPO()).frames(1e5).search(gamma=uniform(0.9, 0.99)).random()
    return [
        ("env", lambda: (base, base.env(Classic("Acrobot-v1")))),
        ("agent", lambda: (base, base.agent(PPO(gamma=0.5)))),
        ("frames", lambda: (base, base.frames(2e5))),
        ("log_every", lambda: (base, base.log_every(7))),
        ("checkpoint_every", lambda: (base, base.checkpoint_every(7))),
        ("seeds", lambda: (base, base.seeds(7))),
        ("target", lambda: (base, base.target(7))),
        ("evaluate", lambda: (base, base.evaluate(7000))),
        ("init_from", lambda: (base, base.init_from("0123456789ab-s0"))),
        ("on_log", lambda: (base, base.on_log(hook))),
        ("on_end", lambda: (base, base.on_end(hook))),
        ("on", lambda: (base, base.on(Slurm(hours=7)))),
        ("after", lambda: (base, base.after(CARTPOLE.named("earlier")))),
        ("named", lambda: (base, base.named("other"))),
        ("search", lambda: (base, base.search(gamma=uniform(0.1, 0.2)).random())),
        ("grid", lambda: (base, base.search(gamma=grid(0.1, 0.2)).grid())),
        ("random", lambda: (base, base.random(7))),
        ("sobol", lambda: (base, base.sobol(7))),
        ("narrow", lambda: (base, base.narrow(7))),
        ("validate", lambda: (base, base.validate(7))),
        ("objective", lambda: (base, base.objective("median"))),
        ("asha", lambda: (base, base.asha(7, grace=7))),
        ("nevergrad", lambda: (base, base.nevergrad(trials=7))),
    ]


@pytest.mark.parametrize(("name", "call"), calls(), ids=[name for name, _ in calls()])
def test_a_call_gives_a_new_builder_and_leaves_the_old_one(name: str, call: object) -> None:
    before = CARTPOLE.agent(PPO()).frames(1e5).search(gamma=uniform(0.9, 0.99)).random().build()
    old, new = call()
    assert old.build() == before
    assert new.build() != before


def test_no_method_is_left_out_of_the_test_above() -> None:
    methods = {name for name, value in vars(ExperimentBuilder).items() if callable(value) and not name.startswith("_")}
    assert methods - {name for name, _ in calls()} <= {"build", "compute"}


def test_a_builder_cannot_be_assigned_to() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CARTPOLE.base = "other"


def test_the_order_of_calls_does_not_matter() -> None:
    one = experiment("x").env(Classic("CartPole-v1")).agent(PPO()).frames(1e5).log_every(10).seeds(2)
    other = experiment("x").seeds(2).log_every(10).frames(1e5).agent(PPO()).env(Classic("CartPole-v1"))
    assert one.build() == other.build()


@pytest.mark.parametrize(
    ("builder", "name"),
    [
        (CARTPOLE, "cartpole"),
        (CARTPOLE.agent(PPO()), "cartpole/ppo"),
        (CARTPOLE.agent(Random()), "cartpole/random"),
        (CARTPOLE.agent(PPO()).search(gamma=uniform(0.1, 0.2)), "cartpole/ppo-search"),
        (CARTPOLE.agent(PPO()).search(gamma=grid(0.1, 0.2)), "cartpole/ppo-grid"),
        (CARTPOLE.agent(PPO()).search(agent=grid(PPO(), Random())), "cartpole/grid"),
        (CARTPOLE.agent(PPO()).search(gamma=grid(0.1, 0.2)).named("mine/own"), "mine/own"),
    ],
)
def test_the_name_says_what_it_is_unless_another_was_given(builder: ExperimentBuilder, name: str) -> None:
    assert builder.name == name


def test_a_search_is_exhaustive_if_every_axis_is_a_grid_and_as_chosen_otherwise() -> None:
    ppo = CARTPOLE.agent(PPO()).frames(1e5)
    assert ppo.search(gamma=grid(0.1, 0.2)).build().search.method == Exhaustive()
    assert ppo.search(gamma=grid(0.1, 0.2), lam=uniform(0, 1)).random().build().search.method == RandomSearch()
    assert ppo.search(lam=uniform(0, 1)).random(5, seed=2).build().search.method == RandomSearch(5, seed=2)
    assert ppo.search(lam=uniform(0, 1)).nevergrad(trials=5).build().search.method == Nevergrad(5)


def test_the_seeds_of_a_search_are_apart_from_those_of_a_benchmark() -> None:
    ppo = CARTPOLE.agent(PPO()).frames(1e5).seeds(3)
    benchmark = set(ppo.build().session_seeds)
    search = set(ppo.search(lam=uniform(0, 1)).random().build().session_seeds)
    assert benchmark == {0, 1, 2}
    assert len(search) == 3
    assert not benchmark & search
    assert set(ppo.search(lam=grid(0.1, 0.2)).build().session_seeds) == benchmark


def test_seeds_may_begin_anywhere_below_those_of_a_search() -> None:
    assert CARTPOLE.agent(PPO()).frames(1e5).seeds(2, first=7).build().seeds == Seeds(2, first=7)
    with pytest.raises(SpecError, match="seeds from 1,000,000 on are reserved for searches"):
        CARTPOLE.seeds(2, first=999_999)


def test_what_is_not_complete_says_what_it_needs() -> None:
    with pytest.raises(SpecError, match=r"experiment 'cartpole' is not complete: it needs .agent\(...\) and .frames"):
        CARTPOLE.build()
