"""What a search costs: its frames if every trial trains to the end, and those that ASHA is expected to train."""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Iterator
from statistics import fmean

from rldsl.plan.points import count
from rldsl.spec.experiment import Experiment
from rldsl.spec.search import Asha
from rldsl.store.plan_parts import RungCost, SearchCost, StageCost

ORDERS = 20
"""Random orders of arrival that an expectation is the mean of."""
MOST_RESULTS = 1000
"""Results of a rung that are simulated; more promote in proportion."""


def search_cost(experiment: Experiment) -> SearchCost | None:
    """The cost of a sampled search; None if the experiment has none."""
    search, budget = experiment.search, experiment.budget.frames
    if search is None or not search.method.sampled:
        return None
    trials, seeds = count(search), experiment.session_count
    axes = tuple(dict.fromkeys(one.paths[0] for one in search.sampled_dimensions or search.dimensions))
    total = None if "budget.frames" in search.paths() else trials * seeds * budget
    rungs = _rungs(search.method, trials, budget) if isinstance(search.method, Asha) else ()
    return SearchCost(axes, getattr(search.method, "trials", trials), total, rungs, tuple(_stages(experiment)))


def _stages(experiment: Experiment) -> Iterator[StageCost]:
    """The stages after the first; those of a validation include the current settings."""
    search, budget = experiment.search, experiment.budget.frames
    assert search is not None
    if (narrow := search.narrow) is not None:
        yield StageCost("narrow", narrow.trials, narrow.seeds, narrow.trials * narrow.seeds * budget)
    if search.validate_best is not None:
        trials, seeds = search.validate_best + 1, len(experiment.seeds)
        yield StageCost("validation", trials, seeds, trials * seeds * budget)


def _rungs(method: Asha, trials: int, budget: int) -> tuple[RungCost, ...]:
    """The expected trials of each rung; a trial trains its earlier seeds on and its new ones from the start."""
    costs: list[RungCost] = []
    expected, before = float(trials), 0
    for rung, frames in enumerate(method.rungs(budget)):
        if rung:
            expected = max(1.0, (_continued if method.stopping else _promoted)(method, expected))
        seeds = method.seeds_at(rung)
        costs.append(RungCost(frames, seeds, expected, round(expected * (seeds * frames - before))))
        before = seeds * frames
    return tuple(costs)


def _promoted(method: Asha, results: float) -> float:
    """Expected promotions from a rung: more than 1/eta, since trials that were among the best for a while count."""
    number = min(round(results), MOST_RESULTS)
    return fmean(_promotions(method, number, random.Random(order)) for order in range(ORDERS)) * results / number


def _promotions(method: Asha, results: int, stream: random.Random) -> int:
    """Promotions from a rung on which so many results arrive in random order."""
    ranked: list[float] = []
    promoted: set[float] = set()
    for arrived in range(1, results + 1):
        insort(ranked, stream.random())
        if arrived >= method.results_needed or arrived == results:
            promoted.update(ranked[: arrived // method.eta])
    return len(promoted)


def _continued(method: Asha, results: float) -> float:
    """Expected trials that go on in the stopping variant: the first ones, then each with probability floor(n/eta)/n."""
    first = min(method.results_needed - 1, round(results))
    return first + sum(number // method.eta / number for number in range(first + 1, round(results) + 1))
