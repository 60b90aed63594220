"""The simulation of coverage: small, reproducible, and with the intervals that reports use."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.coverage import DISTRIBUTIONS, SEEDS, Simulation

ROOT = Path(__file__).parents[1]
MEASURED = json.loads((ROOT / "results" / "coverage.json").read_text())
NOISE = 0.06
"""What 600 simulations may differ by: three standard errors of a coverage of 50%."""


@pytest.mark.parametrize("statistic", ["mean", "difference", "improvement"])
def test_the_committed_coverage_can_be_reproduced(statistic: str) -> None:
    """Another seed and fewer simulations, for the intervals that are used."""
    used = {"mean": "t", "difference": "Welch", "improvement": "Newcombe"}[statistic]
    known = {(one["distribution"], one["n"]): one["coverage"] for one in MEASURED[statistic] if one["method"] == used}
    found = [one for one in getattr(Simulation(600, 3, seed=1), statistic)() if one["method"] == used]
    assert len(found) == len(known) >= len(DISTRIBUTIONS) * len(SEEDS)
    for one in found:
        assert one["coverage"] == pytest.approx(known[one["distribution"], one["n"]], abs=NOISE), one


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_mean_and_standard_deviation_of_the_distributions(name: str) -> None:
    sample, mean, spread = DISTRIBUTIONS[name]
    drawn = sample(np.random.default_rng(0), (4_000_000,))
    assert drawn.mean() == pytest.approx(mean, abs=0.01)
    assert drawn.std() == pytest.approx(spread, rel=0.05)


def covered(statistic: str, method: str, distribution: str, n: int) -> float:
    (one,) = (
        one
        for one in MEASURED[statistic]
        if (one["method"], one["distribution"], one["n"]) == (method, distribution, n)
    )
    return float(one["coverage"])


@pytest.mark.parametrize("n", SEEDS)
def test_what_the_documentation_concludes(n: int) -> None:
    for distribution in DISTRIBUTIONS:
        others = [covered("mean", method, distribution, n) for method in ("percentile bootstrap", "BCa bootstrap")]
        assert covered("mean", "t", distribution, n) >= max(others) - 0.01
        assert covered("mean", "range of the seeds, of the median", distribution, n) == pytest.approx(
            1 - 2 / 2**n, abs=0.02
        )
    for symmetric in ("normal", "heavy-tailed"):
        assert covered("mean", "t", symmetric, n) == pytest.approx(0.95, abs=0.02)
    if n >= 4:
        for distribution in (*DISTRIBUTIONS, *(f"{name}, B better" for name in DISTRIBUTIONS)):
            assert covered("improvement", "Newcombe", distribution, n) == pytest.approx(0.95, abs=0.02)
