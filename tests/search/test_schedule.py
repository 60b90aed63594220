"""The scheduler: the same decisions as an implementation from the paper, in any arrival order, across restarts."""

from __future__ import annotations

import json
import math
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rldsl import PPO, Classic, experiment, uniform
from rldsl.search.history import History
from rldsl.search.objective import Objective
from rldsl.search.schedule import Finished, Promote, Schedule, StartNew, Wait, decide, schedule_of
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from tests.search.reference_asha import ReferenceAsha, ReferenceStopping


def make(trials: int, rungs: int = 3, eta: int = 3, min_results: int | None = None, **options: Any) -> Schedule:
    frames = tuple(100 * eta**rung for rung in range(rungs))
    seeds = tuple(tuple(range(rung + 1)) for rung in range(rungs))
    return Schedule(trials, frames, seeds, eta, min_results or 2 * eta, **options)


class Simulation:
    """A search without training: a journal, results that a table gives, and workers that end in a random order."""

    def __init__(self, schedule: Schedule, seed: int, fail: float = 0.0, levels: int = 5) -> None:
        self.schedule, self.random, self.fail, self.levels = schedule, random.Random(seed), fail, levels
        self.journal: list[str] = []
        self.running: list[tuple[int, int]] = []
        self.history = History()

    def append(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, **facts})
        self.journal.append(line)
        self.history = self.history.after(json.loads(line))

    def restart(self) -> None:
        """A new driver knows the journal and nothing else; one was killed after it had written half a decision."""
        self.history = History.of(map(json.loads, self.journal))

    def decide(self) -> tuple[int, int] | str:
        decision = decide(self.history, self.schedule)
        if isinstance(decision, Wait | Finished):
            return type(decision).__name__.lower()
        trial, rung = decision if isinstance(decision, Promote) else (decision.trial, 0)
        if isinstance(decision, StartNew):
            self.append("suggested", trial=trial, point={"agent.gamma": 0.9}, id=f"t{trial}")
            if self.random.random() < 0.2:
                self.restart()
                assert decide(self.history, self.schedule) == decision, "it was suggested but not started"
        self.append("started", trial=trial, rung=rung, seeds=list(self.schedule.seeds[rung]))
        self.running.append((trial, rung))
        return trial, rung

    def end(self) -> tuple[int, int, float | None]:
        """Any of the running trials ends."""
        trial, rung = self.running.pop(self.random.randrange(len(self.running)))
        if self.random.random() < self.fail:
            self.append("failed", trial=trial, rung=rung, reason="diverged")
            return trial, rung, None
        values = {seed: float(self.random.randrange(self.levels)) for seed in self.schedule.seeds[rung]}
        self.append("finished", trial=trial, rung=rung, values=values, seconds=1.0)
        return trial, rung, self.schedule.objective.value(values.values())


def replay(simulation: Simulation, reference: ReferenceAsha | ReferenceStopping, workers: int) -> list[Any]:
    """Runs a search to its end, and compares each decision with that of the reference."""
    decisions: list[Any] = []
    while True:
        if simulation.random.random() < 0.2:
            simulation.restart()
        if len(simulation.running) < workers and simulation.random.random() < 0.8:
            decided = simulation.decide()
            assert decided == reference.get_job()
            decisions.append(decided)
            if decided == "finished":
                return decisions
            if decided != "wait":
                continue
        if simulation.running:
            reference.report(*simulation.end())


SEARCHES = {
    "trials": st.integers(1, 30),
    "rungs": st.integers(1, 4),
    "eta": st.integers(2, 4),
    "extra": st.integers(0, 8),
    "workers": st.integers(1, 8),
    "fail": st.sampled_from([0.0, 0.0, 0.2, 0.6]),
    "seed": st.integers(0, 2**32),
}


@settings(max_examples=300, deadline=None)
@given(**SEARCHES)
def test_promotions_are_those_of_the_paper(
    trials: int, rungs: int, eta: int, extra: int, workers: int, fail: float, seed: int
) -> None:
    simulation = Simulation(make(trials, rungs, eta, eta + extra), seed, fail)
    replay(simulation, ReferenceAsha(trials, rungs, eta, eta + extra), workers)
    history = simulation.history
    assert history == History.of(map(json.loads, simulation.journal)), "a restart sees the same"
    assert len(history.trials) == trials and not any(trial.running for trial in history.trials)
    alive = [trial for trial in history.trials if trial.failed is None]
    assert not alive or any(trial.failed or trial.reached == rungs - 1 for trial in history.trials)
    if not fail:
        assert max(trial.reached for trial in alive) == rungs - 1, "one trial has trained for the whole budget"


@settings(max_examples=150, deadline=None)
@given(**SEARCHES)
def test_stopping_judges_each_trial_when_it_arrives(
    trials: int, rungs: int, eta: int, extra: int, workers: int, fail: float, seed: int
) -> None:
    simulation = Simulation(make(trials, rungs, eta, eta + extra, stopping=True), seed, fail)
    replay(simulation, ReferenceStopping(trials, rungs, eta, eta + extra), workers)


@settings(max_examples=100, deadline=None)
@given(**SEARCHES)
def test_a_trial_runs_once_at_a_time_and_no_rung_decides_early(
    trials: int, rungs: int, eta: int, extra: int, workers: int, fail: float, seed: int
) -> None:
    simulation = Simulation(make(trials, rungs, eta, eta + extra), seed, fail)
    replay(simulation, ReferenceAsha(trials, rungs, eta, eta + extra), workers)
    running: set[int] = set()
    results = dict.fromkeys(range(rungs), 0)
    suggested = 0
    for event in map(json.loads, simulation.journal):
        trial = event["trial"]
        suggested += event["event"] == "suggested"
        if event["event"] == "started":
            assert trial not in running
            enough = event["rung"] == 0 or results[event["rung"] - 1] >= eta + extra
            assert enough or (suggested == trials and not running) or _last(simulation, event, trials)
            running.add(trial)
        elif event["event"] in ("finished", "failed"):
            running.remove(trial)
            results[event["rung"]] += 1


def _last(simulation: Simulation, event: dict[str, Any], trials: int) -> bool:
    """Whether a promotion was one of several that were decided together after everything had ended."""
    lines = [json.loads(line) for line in simulation.journal]
    before = lines[: lines.index(event)]
    while before and before[-1]["event"] == "started":
        before.pop()
    history = History.of(before)
    return len(history.trials) == trials and not any(trial.running for trial in history.trials)


def test_the_order_of_arrival_does_not_change_the_winner_when_all_wait_for_all() -> None:
    """With a worker for each trial and no noise, every arrival order promotes the same trials."""
    table = {trial: float((7 * trial) % 9) for trial in range(9)}
    promoted = set()
    for seed in range(20):
        order = random.Random(seed)
        history = History()
        for trial in range(9):
            history = history.after({"event": "suggested", "trial": trial, "point": {}, "id": str(trial)})
            history = history.after({"event": "started", "trial": trial, "rung": 0, "seeds": [0]})
        for trial in order.sample(range(9), 9):
            facts = {"trial": trial, "rung": 0, "values": {"0": table[trial]}, "seconds": 1.0}
            history = history.after({"event": "finished", **facts})
        chosen = []
        while isinstance(decision := decide(history, make(9)), Promote):
            chosen.append(decision.trial)
            history = history.after({"event": "started", "trial": decision.trial, "rung": 1, "seeds": [0, 1]})
        promoted.add(tuple(chosen))
    assert promoted == {(5, 1, 6)}, "scores 8, 7 and 6"


def finished(*scores: float | None, rung: int = 0) -> History:
    """Trials that have ended the first rung with these scores; None: failed."""
    history = History()
    for trial, score in enumerate(scores):
        history = history.after({"event": "suggested", "trial": trial, "point": {}, "id": str(trial)})
        history = history.after({"event": "started", "trial": trial, "rung": rung, "seeds": [0]})
        ended = {"event": "finished", "values": {"0": score}, "seconds": 1.0}
        failed = {"event": "failed", "reason": "diverged"}
        history = history.after({**(failed if score is None else ended), "trial": trial, "rung": rung})
    return history


def test_nothing_is_promoted_before_enough_results() -> None:
    assert decide(finished(1, 2, 3, 4, 5), make(20)) == StartNew(5)
    assert decide(finished(1, 2, 3, 4, 5, 6), make(20)) == Promote(5, 1)


def test_ties_are_broken_by_trial_number() -> None:
    assert decide(finished(1, 1, 1, 1, 1, 1), make(20)) == Promote(0, 1)


def test_failed_trials_are_results_that_are_never_promoted() -> None:
    assert decide(finished(None, None, None, None, 1, 2), make(20)) == Promote(5, 1), "two of six, one of them alive"
    assert decide(finished(None, None, None, None, None, None), make(20)) == StartNew(6)
    assert decide(finished(None, None, None), make(3)) == Finished()


def test_a_trial_without_a_log_point_is_worse_than_any_other() -> None:
    assert decide(finished(math.nan, -9, math.nan, -8, math.nan, math.nan), make(20)) == Promote(3, 1)
    event = {"event": "finished", "trial": 0, "rung": 0, "values": {"0": None}, "seconds": 1.0}
    history = History.of([{"event": "suggested", "trial": 0, "point": {}, "id": "0"}, event])
    assert math.isnan(history.trials[0].values[0][0])


def test_fewer_trials_than_results_needed_are_decided_once_nothing_runs() -> None:
    history = finished(3, 1, 2, 4)
    assert decide(history, make(4)) == Promote(3, 1), "one of four"
    history = history.after({"event": "started", "trial": 3, "rung": 1, "seeds": [0, 1]})
    assert decide(history, make(4)) == Wait()


def test_minimizing_promotes_the_lowest() -> None:
    schedule = make(20, objective=Objective(maximize=False))
    assert decide(finished(6, 5, 4, 3, 1, 2), schedule) == Promote(4, 1)


def test_a_limit_of_parallel_trials_is_kept() -> None:
    history = History()
    for trial in range(2):
        history = history.after({"event": "suggested", "trial": trial, "point": {}, "id": str(trial)})
        history = history.after({"event": "started", "trial": trial, "rung": 0, "seeds": [0]})
    assert decide(history, make(9, rungs=1, parallel=2)) == Wait()
    assert decide(history, make(9, rungs=1, parallel=3)) == StartNew(2)


def test_a_retried_trial_runs_again() -> None:
    history = finished(None, 1).after({"event": "retried", "trial": 0, "rung": 0})
    assert history.trials[0].running and history.arrivals == ((1, 0),)
    assert decide(history, make(2)) == Wait()


def test_a_search_can_be_extended() -> None:
    history = finished(1, 2)
    history = history.after({"event": "started", "trial": 1, "rung": 1, "seeds": [0]})
    assert decide(history, make(2)) == Wait()
    assert decide(history, make(3)) == StartNew(2)


def test_the_schedule_of_an_experiment() -> None:
    base = experiment("x").env(Classic("CartPole-v1")).agent(PPO()).frames(1e4).seeds(2)
    search = base.search(gamma=uniform(0.9, 0.99))
    schedule = schedule_of(search.random(trials=5).build())
    assert (schedule.trials, schedule.frames) == (5, (10_000,))
    assert schedule.seeds == ((SEARCH_SEEDS_FROM, SEARCH_SEEDS_FROM + 1),)
    schedule = schedule_of(search.asha(trials=7, grace=1e3, eta=3).build())
    assert (schedule.trials, schedule.frames, schedule.min_results) == (7, (1000, 3000, 9000, 10_000), 6)
    assert schedule.until(2) == 9000 and schedule.until(3) is None
    schedule = schedule_of(search.asha(trials=7, eta=4, seeds=(1, 2), min_results=1).build())
    assert schedule.frames == (2500, 10_000) and schedule.min_results == 4, "at least eta"
    first, second = SEARCH_SEEDS_FROM, SEARCH_SEEDS_FROM + 1
    assert schedule.seeds == ((first,), (first, second)), "the same for every trial"
    assert schedule_of(search.nevergrad(trials=9, parallel=3).build()).parallel == 3
