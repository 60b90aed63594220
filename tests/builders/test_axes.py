"""Axes: any field, both ends checked where they are declared, zipped or not."""

from __future__ import annotations

import pytest

from rldsl import (
    PPO,
    SAC,
    Classic,
    Linear,
    MuJoCo,
    Random,
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
from rldsl.plan.expand import count, expand

PPO_ON_CARTPOLE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=2)).agent(PPO(rollout=64)).frames(1e5)


def trials(**axes: object) -> list[object]:
    return [planned.trial for planned in expand(PPO_ON_CARTPOLE.search(**axes).build())]


def test_a_field_of_the_agent() -> None:
    assert [trial.agent.gamma for trial in trials(gamma=grid(0.9, 0.99))] == [0.9, 0.99]


def test_the_environment_as_a_whole() -> None:
    envs = Classic("CartPole-v1"), Classic("Acrobot-v1", num_envs=8)
    assert [trial.env for trial in trials(env=grid(*envs))] == list(envs)


def test_the_agent_as_a_whole() -> None:
    agents = PPO(), Random(), PPO(lr=Linear(1e-3))
    assert [trial.agent for trial in trials(agent=grid(*agents))] == list(agents)


def test_fields_of_the_environment_and_of_the_budget() -> None:
    assert [trial.env.num_envs for trial in trials(num_envs=grid(1, 2))] == [1, 2]
    assert [trial.budget.frames for trial in trials(frames=grid(1e4, 2e4))] == [10_000, 20_000]


def test_a_schedule_among_numbers() -> None:
    assert [trial.agent.lr for trial in trials(lr=grid(1e-3, Linear(1e-3)))] == [1e-3, Linear(1e-3)]


def test_a_path_into_the_depth() -> None:
    search = PPO_ON_CARTPOLE.search({"agent.net.hidden": grid((8,), (16, 16)), "agent.optimizer.eps": grid(1e-3)})
    assert [one.trial.agent.net.hidden for one in expand(search.build())] == [(8,), (16, 16)]


def test_a_whole_part_and_a_field_of_it_in_one_search() -> None:
    search = PPO_ON_CARTPOLE.search({"agent.net.activation": grid("relu")}, {"agent.net": grid("mlp", "conv")})
    nets = [one.trial.agent.net for one in expand(search.build())]
    assert [(net.kind, net.activation) for net in nets] == [("mlp", "relu"), ("conv", "relu")]


def test_zipped_axes_move_together() -> None:
    search = PPO_ON_CARTPOLE.search(zipped(gamma=grid(0.9, 0.99), lam=grid(0.8, 0.95)), epochs=grid(1, 2))
    made = [(one.trial.agent.gamma, one.trial.agent.lam, one.trial.agent.epochs) for one in expand(search.build())]
    assert made == [(0.9, 0.8, 1), (0.9, 0.8, 2), (0.99, 0.95, 1), (0.99, 0.95, 2)]


def test_a_zipped_axis_may_hold_a_value_twice() -> None:
    search = PPO_ON_CARTPOLE.search(zipped(gamma=grid(0.9, 0.9), lam=grid(0.8, 0.95)))
    assert [tuple(one.differs.values()) for one in expand(search.build())] == [(0.9, 0.8), (0.9, 0.95)]


def test_zipped_axes_may_be_drawn() -> None:
    pairs = zipped({"agent.gamma": choice(0.9, 0.99)}, lam=choice(0.8, 0.95))
    made = {
        (one.trial.agent.gamma, one.trial.agent.lam) for one in expand(PPO_ON_CARTPOLE.search(pairs).random(20).build())
    }
    assert made == {(0.9, 0.8), (0.99, 0.95)}


@pytest.mark.parametrize(
    ("axes", "sentence"),
    [
        ({"gamma": uniform(0.9, 1.1)}, "agent.gamma should be less than or equal to 1, got 1.1"),
        ({"gamma": uniform(-0.1, 0.9)}, "agent.gamma should be greater than or equal to 0, got -0.1"),
        ({"gamma": grid(0.9, 0.99, 1.5)}, "agent.gamma should be less than or equal to 1, got 1.5"),
        ({"gamma": choice(0.9, "high")}, "agent.gamma should be a valid number, got 'high'"),
        ({"lr": uniform(-1, 1)}, "agent.lr should be at least 0, got -1"),
        ({"lr": grid(1e-3, Linear(1e-3, -1))}, "agent.lr should be at least 0"),
        ({"epochs": int_uniform(0, 5)}, "agent.epochs should be greater than 0, got 0"),
        ({"epochs": uniform(1, 5)}, "agent.epochs should be a whole number, got "),
        ({"epochs": log_uniform(1, 4)}, "agent.epochs should be a whole number, got "),
        ({"env": grid("CartPole-v1")}, "env names no known environment"),
        ({"env": grid(Random())}, "env names no known environment"),
        ({"agent": grid(Classic("CartPole-v1"))}, "agent names no known agent"),
        ({"num_envs": grid(1, 2.5)}, "env.num_envs should be a whole number, got 2.5"),
        ({"gama": grid(0.9)}, "gama names no field; did you mean gamma?"),
        ({"gamma": 0.9}, "gamma should be an axis such as grid(...) or uniform(...), got 0.9"),
        ({"seeds": grid(1, 2)}, "seeds cannot be an axis"),
        ({"target": grid(1, 2)}, "target cannot be an axis"),
        ({}, ".search needs an axis"),
    ],
)
def test_an_axis_that_its_field_does_not_take_is_refused_where_it_is_declared(axes: dict, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        PPO_ON_CARTPOLE.search(**axes)
    assert sentence in caught.value.sentence
    assert "builders/test_axes.py:" in caught.value.where


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: uniform(2, 1), "Uniform.low should be less than high, got 2 and 1"),
        (lambda: uniform(1, 1), "Uniform.low should be less than high, got 1 and 1"),
        (lambda: log_uniform(0, 1), "LogUniform.low should be greater than 0, got 0"),
        (lambda: int_uniform(0.5, 2), "IntUniform.low should be a whole number, got 0.5"),
        (lambda: logit_uniform(0.9, 1), "LogitUniform.high should be less than 1, got 1"),
        (lambda: logit_uniform(0, 0.9), "LogitUniform.low should be greater than 0, got 0"),
        (lambda: grid(), "Grid.values"),
        (lambda: PPO_ON_CARTPOLE.search(epochs=grid(1, 2, 1)), "the axis of agent.epochs holds 1 twice"),
        (lambda: PPO_ON_CARTPOLE.search(agent=choice(Random(), Random())), "the axis of agent holds {'kind'"),
        (lambda: zipped(a=grid(1), b=grid(1, 2)), "zipped takes axes of one length: a has 1, b has 2"),
        (lambda: zipped(a=grid(1), b=choice(1)), "zipped takes axes of one kind, all grid or all choice"),
        (lambda: zipped(a=uniform(0, 1)), "zipped takes axes of one kind, all grid or all choice"),
        (lambda: zipped(), "zipped takes axes of one kind, all grid or all choice"),
        (lambda: PPO_ON_CARTPOLE.search([0.9]), ".search takes axes by name, zipped(...), when(...) or a dictionary"),
        (
            lambda: PPO_ON_CARTPOLE.search(zipped(gamma=grid(0.9), lam=grid(2))),
            "agent.lam should be less than or equal",
        ),
        (lambda: PPO_ON_CARTPOLE.search({"agent.lam": grid(0.9)}, lam=grid(0.8)), "agent.lam is an axis twice"),
        (lambda: PPO_ON_CARTPOLE.random(), ".random needs axes: call .search(...) first"),
        (lambda: PPO_ON_CARTPOLE.search(lam=grid(0.8)).random(), "random has nothing to sample: every axis is a grid"),
    ],
)
def test_axes_that_make_no_sense_are_refused(make: object, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    assert sentence in caught.value.sentence
    assert "builders/test_axes.py:" in caught.value.where


def test_what_a_grid_would_meet_only_at_one_point_is_refused_with_that_point() -> None:
    search = PPO_ON_CARTPOLE.search(minibatch=grid(64, 60)).build()
    with pytest.raises(SpecError, match=r"does not divide.*\(in cartpole/ppo-grid, at agent\.minibatch = 60\)"):
        list(expand(search))


HOPPER = experiment("hopper").env(MuJoCo("Hopper-v5")).frames(1e5)


def test_an_agent_that_is_an_axis_needs_no_other() -> None:
    made = HOPPER.search(agent=grid(SAC(), PPO()), gamma=grid(0.9, 0.99)).build()
    assert made.name == "hopper/grid"
    assert [(one.trial.agent.kind, one.trial.agent.gamma) for one in expand(made)] == [
        ("sac", 0.9),
        ("sac", 0.99),
        ("ppo", 0.9),
        ("ppo", 0.99),
    ]
    env = experiment("any").agent(PPO()).frames(1e5).search(env=grid(Classic("CartPole-v1"))).build()
    assert env.env == Classic("CartPole-v1")


def test_conditional_axes_exist_for_one_choice_only() -> None:
    made = HOPPER.search(
        when("agent", "sac", tau=grid(0.01, 0.02), lr=grid(1e-3)),
        when("agent", PPO, {"agent.net.hidden": grid([8], [16])}, lr=grid(1e-4, 1e-5)),
        agent=grid(SAC(), PPO()),
    ).build()
    points = [{**one.differs, "agent": one.trial.agent.kind} for one in expand(made)]
    assert points == [
        {"agent": "sac", "agent.tau": 0.01, "agent.lr": 1e-3},
        {"agent": "sac", "agent.tau": 0.02, "agent.lr": 1e-3},
        {"agent": "ppo", "agent.net.hidden": [8], "agent.lr": 1e-4},
        {"agent": "ppo", "agent.net.hidden": [8], "agent.lr": 1e-5},
        {"agent": "ppo", "agent.net.hidden": [16], "agent.lr": 1e-4},
        {"agent": "ppo", "agent.net.hidden": [16], "agent.lr": 1e-5},
    ]
    assert count(made) == 6
    assert [one.trial.agent.lr for one in expand(made)][2:4] == [1e-4, 1e-5]


def test_conditions_may_be_nested_zipped_and_about_plain_values() -> None:
    made = PPO_ON_CARTPOLE.search(
        when("agent.net", "mlp", {"agent.net.layer_norm": grid(True, False)}),
        when("agent.net.layer_norm", True, zipped(lr=grid(1e-3, 1e-4), clip=grid(0.1, 0.2))),
        {"agent.net": grid("mlp", "conv")},
    ).build()
    assert count(made) == len(list(expand(made))) == 4
    assert [len(one.differs) for one in expand(made)] == [4, 4, 2, 1]


def test_a_sampled_search_leaves_inactive_axes_out() -> None:
    axes = HOPPER.search(
        when("agent", "sac", tau=log_uniform(1e-3, 1e-1)),
        when("agent", "ppo", lam=uniform(0.9, 0.99)),
        agent=choice(SAC(), PPO()),
    )
    for made in (axes.random(20).build(), axes.sobol(20).build(), axes.asha(20).build()):
        own = {(one.trial.agent.kind, *sorted(one.differs)) for one in expand(made)}
        assert own == {("sac", "agent", "agent.tau"), ("ppo", "agent", "agent.lam")}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: HOPPER.search(when("agent", "ppo", lam=grid(0.9)), agent=choice(SAC(), PPO())).random(),
            "agent.lam is a grid that depends on agent, which is sampled: make it a choice",
        ),
        (
            lambda: HOPPER.search(when("agent", "ppo", lr=uniform(0, 1)), agent=choice(PPO()), lr=uniform(0, 1)),
            "agent.lr is an axis twice",
        ),
        (
            lambda: HOPPER.agent(PPO()).search(
                when("agent.lam", 0.9, gamma=choice(0.5)), when("agent.gamma", 0.5, lam=choice(0.9))
            ),
            "agent.gamma depends on itself",
        ),
        (lambda: when("agent", "ppo"), "when needs an axis, such as tau=log_uniform(1e-3, 1e-1)"),
        (
            lambda: HOPPER.agent(PPO()).search(gamma=uniform(0, 1), frames=choice(10, 20)).asha(),
            "budget.frames cannot be an axis of asha: its rungs count frames",
        ),
        (
            lambda: HOPPER.agent(PPO()).search(gamma=uniform(0, 1)).asha(seeds=(1, 1, 2, 2, 4, 4)),
            "asha.seeds = (1, 1, 2, 2, 4, 4) has more entries than there are rungs (3)",
        ),
        (
            lambda: HOPPER.agent(PPO()).search(gamma=uniform(0, 1)).asha(seeds=(2, 1)),
            "Asha.seeds should not decrease from rung to rung, got (2, 1)",
        ),
        (lambda: HOPPER.agent(PPO()).search(gamma=uniform(0, 1)).objective("best"), "Search.objective"),
        (lambda: HOPPER.objective("median"), ".objective needs axes: call .search(...) first"),
    ],
)
def test_conditions_and_methods_that_make_no_sense_are_refused(make: object, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    assert sentence in caught.value.sentence
    assert "builders/test_axes.py:" in caught.value.where


def test_the_error_of_a_conditional_axis_names_its_own_line() -> None:
    with pytest.raises(SpecError) as caught:
        HOPPER.search(
            when("agent", "sac", tau=log_uniform(1e-3, 1e-1)),
            when("agent", "ppo", lam=uniform(0.9, 1.99)),
            agent=choice(SAC(), PPO()),
        )
    line = caught.value.__traceback__.tb_lineno
    assert caught.value.sentence == "agent.lam should be less than or equal to 1, got 1.99"
    assert caught.value.where.endswith(f":{line + 2}")
