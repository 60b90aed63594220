"""Search methods: the rungs of ASHA, and optimizers that are known without an import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldsl.spec.methods import COMMON_OPTIMIZERS
from rldsl.spec.search import Asha, Nevergrad


@pytest.mark.parametrize(
    ("method", "rungs"),
    [
        (Asha(), (100, 300, 900)),
        (Asha(eta=2), (112, 225, 450, 900)),
        (Asha(eta=10), (90, 900)),
        (Asha(eta=30), (30, 900)),
        (Asha(grace=50), (50, 150, 450, 900)),
        (Asha(grace=300), (300, 900)),
        (Asha(grace=899), (899, 900)),
    ],
)
def test_rungs_grow_by_eta_up_to_the_budget(method: Asha, rungs: tuple[int, ...]) -> None:
    assert method.rungs(900) == rungs


@given(st.integers(2, 20), st.integers(1, 10**9))
def test_rungs_rise_to_the_budget_from_a_tenth_of_it_or_more(eta: int, budget: int) -> None:
    rungs = Asha(eta=eta).rungs(budget)
    assert list(rungs) == sorted(set(rungs))
    assert rungs[-1] == budget
    assert rungs[0] >= min(0.1, 1 / eta) * budget - 0.5


def test_the_last_number_of_seeds_repeats() -> None:
    method = Asha(seeds=(1, 2, 4))
    assert [method.seeds_at(rung) for rung in range(5)] == [1, 2, 4, 4, 4]
    assert Asha(eta=4).results_needed == 8
    assert Asha(min_results=3).results_needed == 3


def test_common_optimizers_are_in_the_registry_and_take_parallel_trials() -> None:
    from nevergrad import optimizers

    for name in COMMON_OPTIMIZERS:
        assert not optimizers.registry[name].no_parallelization


def test_common_optimizers_need_no_import_of_nevergrad() -> None:
    code = (
        "import sys; from rldsl.spec.search import Nevergrad, Sobol; "
        "Nevergrad(optimizer='TBPSA'); Sobol(4); assert not {'nevergrad', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert Nevergrad(optimizer="DiscreteOnePlusOne").optimizer == "DiscreteOnePlusOne"
