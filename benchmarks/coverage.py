"""How often 95% intervals contain the truth, for few seeds: the simulation behind docs/statistics.md.

`python -m benchmarks.coverage` draws the scores of n seeds many times from distributions whose truth is known, computes
each interval, and writes the fraction that contains the truth, and the median width, to results/coverage.json.
The intervals that rldsl uses are computed with the functions of `rldsl.maths.statistics` themselves.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from rldsl.maths.statistics import difference_interval, improvement_interval, interval_of_mean

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
"""Lower and upper ends of the intervals of all simulations."""

SEEDS = (3, 4, 5, 10)
LEVEL = (0.025, 0.975)
SEED = 0


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.normal(size=shape)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Lognormal."""
    return rng.lognormal(size=shape)


def bimodal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """One seed in four fails: 0 instead of 1, with a standard deviation of 0.1 around both."""
    return np.where(rng.random(shape) < 0.25, 0.0, 1.0) + 0.1 * rng.normal(size=shape)


def heavy_tailed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Student's t with three degrees of freedom."""
    return rng.standard_t(3, size=shape)


DISTRIBUTIONS = {
    "normal": (normal, 0.0, 1.0),
    "skewed": (skewed, np.exp(0.5), np.sqrt((np.e - 1) * np.e)),
    "bimodal": (bimodal, 0.75, np.sqrt(0.75 * 0.25 + 0.01)),
    "heavy-tailed": (heavy_tailed, 0.0, np.sqrt(3.0)),
}
"""Name: sampler, mean and standard deviation."""


class Simulation:
    """Computes the coverage of intervals with given numbers of simulations and of bootstrap resamples."""

    def __init__(self, simulations: int, resamples: int, seed: int = SEED) -> None:
        self.simulations, self.resamples = simulations, resamples
        self.rng = np.random.default_rng(seed)

    def mean(self) -> Iterator[dict[str, Any]]:
        """Intervals of the mean; the range of the seeds also as an interval of the median."""
        methods = {
            "t": lambda x: _by_row(interval_of_mean, x),
            "percentile bootstrap": self._percentile,
            "BCa bootstrap": self._bca,
            "bootstrap-t": self._bootstrap_t,
            "range of the seeds": lambda x: (x.min(1), x.max(1)),
        }
        for distribution, (sample, truth, spread) in DISTRIBUTIONS.items():
            median = float(np.median(sample(self.rng, (1_000_000,))))
            for n in SEEDS:
                x = sample(self.rng, (self.simulations, n))
                for method, interval in methods.items():
                    yield _row(distribution, n, method, interval(x), truth, spread)
                yield _row(distribution, n, "range of the seeds, of the median", (x.min(1), x.max(1)), median, spread)

    def difference(self) -> Iterator[dict[str, Any]]:
        """Intervals of mean(B) - mean(A): both from one distribution, or A normal with a tenth of B's spread."""
        methods = {
            "Welch": lambda a, b: _by_row(difference_interval, a, b),
            "percentile bootstrap": self._percentile_of_difference,
        }
        for distribution, (sample, truth, spread) in DISTRIBUTIONS.items():
            for n in SEEDS:
                b = sample(self.rng, (self.simulations, n))
                pairs = {
                    distribution: (sample(self.rng, b.shape), 0.0),
                    f"{distribution}, A reliable": (0.1 * spread * self.rng.normal(size=b.shape), truth),
                }
                for name, (a, difference) in pairs.items():
                    for method, interval in methods.items():
                        yield _row(name, n, method, interval(a, b), difference, spread)

    def improvement(self) -> Iterator[dict[str, Any]]:
        """Intervals of the probability of improvement: A and B equal, or B better by 1.5 standard deviations."""
        methods = {
            "Newcombe": lambda a, b: _by_row(improvement_interval, a, b),
            "percentile bootstrap": self._percentile_of_improvement,
        }
        for distribution, (sample, _, spread) in DISTRIBUTIONS.items():
            many = [sample(self.rng, (1000, 1000)) for _ in range(2)]
            better = float((many[1] + 1.5 * spread > many[0]).mean())
            for shift, truth in ((0.0, 0.5), (1.5, better)):
                name = distribution if not shift else f"{distribution}, B better"
                for n in SEEDS:
                    a, b = (sample(self.rng, (self.simulations, n)) for _ in range(2))
                    for method, interval in methods.items():
                        yield _row(name, n, method, interval(a, b + shift * spread), truth, 1.0)

    def _bootstrap(self, statistic: Callable[..., Floats], *groups: Floats) -> Floats:
        """The statistic of resamples of each simulation: `[resamples, simulations]`."""
        return np.stack([statistic(*map(self._resample, groups)) for _ in range(self.resamples)])

    def _resample(self, x: Floats) -> Floats:
        return np.take_along_axis(x, self.rng.integers(x.shape[1], size=x.shape), axis=1)

    def _percentile(self, x: Floats) -> Ends:
        return _quantiles(self._bootstrap(lambda x: x.mean(1), x))

    def _bca(self, x: Floats) -> Ends:
        blocks = np.array_split(x, max(1, len(x) // 500))  # scipy holds all resamples in memory
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of intervals that are not defined; they count as misses
            ends = [
                scipy.stats.bootstrap((x,), np.mean, axis=-1, n_resamples=self.resamples, method="BCa", rng=self.rng)
                for x in blocks
            ]
        low, high = np.concatenate([one.confidence_interval for one in ends], axis=1)
        return low, high

    def _bootstrap_t(self, x: Floats) -> Ends:
        """The quantiles of (mean* - mean) / standard error* of resamples replace those of Student's distribution."""
        mean, error = x.mean(1), _standard_error(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self._bootstrap(lambda x: (x.mean(1) - mean) / _standard_error(x), x)
        ratios = np.nan_to_num(ratios, nan=0.0, posinf=np.inf, neginf=-np.inf)
        low, high = np.quantile(ratios, LEVEL, axis=0, method="nearest")
        return mean - high * error, mean - low * error

    def _percentile_of_difference(self, a: Floats, b: Floats) -> Ends:
        return _quantiles(self._bootstrap(lambda a, b: b.mean(1) - a.mean(1), a, b))

    def _percentile_of_improvement(self, a: Floats, b: Floats) -> Ends:
        """The interval of rliable."""
        return _quantiles(self._bootstrap(_probability_of_improvement, a, b))


def _standard_error(x: Floats) -> Floats:
    error = x.std(1, ddof=1) / np.sqrt(x.shape[1])
    return np.where(error < 1e-12, 0.0, error)  # resamples of one seed only: rounding must not hide that they are equal


def _probability_of_improvement(a: Floats, b: Floats) -> Floats:
    return (np.sign(b[:, :, None] - a[:, None, :]) + 1).mean((1, 2)) / 2


def _by_row(interval: Callable[..., tuple[float, float]], *scores: Floats) -> Ends:
    ends = np.array([interval(*rows) for rows in zip(*scores, strict=True)])
    return ends[:, 0], ends[:, 1]


def _quantiles(values: Floats) -> Ends:
    low, high = np.quantile(values, LEVEL, axis=0)
    return low, high


def _row(distribution: str, n: int, method: str, ends: Ends, truth: float, spread: float) -> dict[str, Any]:
    low, high = ends
    with np.errstate(invalid="ignore"):  # ends may both be infinite
        coverage, width = np.mean((low <= truth) & (truth <= high)), np.median(high - low) / spread
    return {
        "distribution": distribution,
        "n": n,
        "method": method,
        "coverage": round(float(coverage), 3),
        "width": round(float(width), 2) if np.isfinite(width) else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("results/coverage.json"))
    given = parser.parse_args()
    simulation = Simulation(given.simulations, given.resamples)
    measured: dict[str, Any] = {"seed": SEED, "simulations": given.simulations, "resamples": given.resamples}
    for name in ("mean", "difference", "improvement"):
        measured[name] = []
        for row in getattr(simulation, name)():
            measured[name].append(row)
            print(name, *row.values(), flush=True)
    given.out.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
