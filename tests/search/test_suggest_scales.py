"""The scales of axes: what Sobol sequences and Nevergrad's parameters make of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rldsl import PPO, MuJoCo, choice, experiment, grid, int_uniform, log_uniform, logit_uniform, uniform
from rldsl.plan.points import points
from rldsl.search.nevergrad import _value, parametrization
from rldsl.spec.search import (
    Axis,
    Choice,
    Dimension,
    Interval,
    IntUniform,
    LogitUniform,
    LogUniform,
    Nevergrad,
    Search,
    Uniform,
)

AXES: dict[str, Axis] = {
    "uniform": Uniform(0.1, 0.4),
    "log_uniform": LogUniform(1e-5, 1e-1),
    "logit_uniform": LogitUniform(0.9, 0.999),
    "int_uniform": IntUniform(-2, 3),
    "choice": Choice(("a", "b", "c")),
    "ordered": Choice(("a", "b", "c", "d"), ordered=True),
    "grid": grid("a", "b"),
}


def search_over(*axes: Axis) -> Search:
    dimensions = tuple(Dimension(paths=(f"agent.x{index}",), axis=axis) for index, axis in enumerate(axes))
    return Search(dimensions=dimensions, method=Nevergrad(trials=10))


def sampled(*axes: Axis, number: int) -> list[list[object]]:
    """Samples of Nevergrad's parametrization, as its optimizers start with them."""
    space = parametrization(search_over(*axes))
    space.random_state.seed(0)
    values = [space.sample().value for _ in range(number)]
    return [[_value(axis, value[str(index)]) for value in values] for index, axis in enumerate(axes)]


@pytest.fixture(scope="module")
def samples() -> dict[str, list[object]]:
    return dict(zip(AXES, sampled(*AXES.values(), number=500), strict=True))


@pytest.mark.parametrize("name", ["uniform", "log_uniform", "logit_uniform"])
def test_nevergrad_starts_uniformly_on_the_scale_of_an_interval(samples: dict, name: str) -> None:
    axis = AXES[name]
    low, high = axis.scaled(axis.low), axis.scaled(axis.high)
    scaled = [(axis.scaled(value) - low) / (high - low) for value in samples[name]]
    assert stats.kstest(scaled, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", ["int_uniform", "choice", "ordered", "grid"])
def test_nevergrad_starts_with_every_value_equally_often(samples: dict, name: str) -> None:
    axis = AXES[name]
    values = range(axis.low, axis.high + 1) if isinstance(axis, IntUniform) else axis.values
    counts = Counter(samples[name])
    assert set(counts) == set(values)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


bounds = st.lists(st.floats(1e-6, 0.999999), min_size=2, max_size=2, unique=True).map(sorted)
intervals = bounds.flatmap(
    lambda ends: st.sampled_from([Uniform(*ends), LogUniform(*ends), LogitUniform(*ends)])
) | st.lists(st.integers(-50, 50), min_size=2, max_size=2, unique=True).map(lambda ends: IntUniform(*sorted(ends)))


@settings(max_examples=60, deadline=None)
@given(intervals, st.integers(0, 2**20), st.floats(-50, 50))
def test_values_stay_within_the_bounds_wherever_an_optimizer_goes(axis: Interval, seed: int, far: float) -> None:
    space = parametrization(search_over(axis))
    space.random_state.seed(seed)
    moved = space.spawn_child().set_standardized_data(np.full(space.dimension, far))
    for candidate in (space, space.sample(), moved):
        value = _value(axis, candidate.value["0"])
        assert axis.low <= value <= axis.high
        assert isinstance(value, int if isinstance(axis, IntUniform) else float)


@settings(max_examples=200, deadline=None)
@given(intervals, st.floats(0, 1))
def test_quantiles_stay_within_the_bounds(axis: Interval, u: float) -> None:
    assert axis.low <= axis.at(u) <= axis.high
    assert axis.at(0.0) == pytest.approx(axis.low) and axis.at(1.0) == pytest.approx(axis.high)


def test_the_quantiles_of_a_logit_axis_are_those_of_its_logit() -> None:
    axis = logit_uniform(0.9, 0.999)
    middle = axis.at(0.5)
    assert middle / (1 - middle) == pytest.approx(np.sqrt(9 * 999))


def test_a_sobol_sequence_fills_every_axis_evenly() -> None:
    made = (
        experiment("hopper")
        .env(MuJoCo("Hopper-v5"))
        .agent(PPO())
        .frames(1e5)
        .search(lr=log_uniform(1e-5, 1e-1), epochs=int_uniform(1, 4), clip=choice(0.1, 0.2), lam=uniform(0, 1))
        .sobol(64, seed=3)
        .build()
    )
    drawn = list(points(made.search))
    assert Counter(point["agent.epochs"] for point in drawn) == dict.fromkeys(range(1, 5), 16)
    assert Counter(point["agent.clip"] for point in drawn) == {0.1: 32, 0.2: 32}
    decades = Counter(int(np.floor(np.log10(point["agent.lr"]))) for point in drawn)
    assert decades == dict.fromkeys((-5, -4, -3, -2), 16)
    # Pairs too: each quarter of the square holds a quarter of the points.
    quarters = Counter((point["agent.lam"] < 0.5, point["agent.lr"] < 1e-3) for point in drawn)
    assert set(quarters.values()) == {16}
