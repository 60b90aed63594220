"""Validation: which sessions it trains, and what it says about their scores."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rldsl import PPO, SAC, choice, log_uniform, when
from rldsl.cli.validate import verdict
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.search.history import History
from rldsl.search.leaderboard import best_trials
from rldsl.search.validate import Candidate, candidates, validation_plan, validation_results, winner
from rldsl.spec.experiment import Experiment
from rldsl.spec.gin_text import session_gin
from rldsl.store.metrics import MetricsWriter
from rldsl.store.session_dir import SessionDir
from tests.search.recorded import AXES, CARTPOLE, linear, record

SEEDS = CARTPOLE.seeds(4, first=100)


def compared(searched: Experiment, best: int = 2) -> list[Candidate]:
    history = History.of(record(searched, linear))
    return candidates(searched, best_trials(history, searched, best), Overridden(searched))


def finish(runs: Path, one: Candidate, scores: list[float | None]) -> None:
    """Writes finished sessions with these scores, one per seed; None: the session has not ended."""
    for session, score in zip(one.row.sessions(), scores, strict=True):
        directory = SessionDir.create(runs, session.directory, session.record(), session_gin(session))
        MetricsWriter(directory.metrics, ("frame", "seconds", "episode_return")).write(
            {"frame": 90_000, "seconds": 1.0, "episode_return": score or 0.0}
        )
        directory.journal.append("started", frame=0)
        if score is not None:
            directory.journal.append("done", frame=90_000)


@pytest.fixture
def searched() -> Experiment:
    return SEEDS.search(**AXES).asha(trials=9, grace=1e4).build()


def test_the_plan_shares_sessions_with_ordinary_training(searched: Experiment) -> None:
    current, *best = compared(searched)
    (trained,) = make_plan([Overridden(SEEDS.build())]).rows()
    assert current.number is None and current.row.id == trained.id and current.row.seeds == trained.seeds
    assert [current.row.directory(seed) for seed in trained.seeds] == [
        trained.directory(seed) for seed in trained.seeds
    ]
    assert current.row.differs == {"agent.gamma": 0.99, "agent.lr": 3e-4}
    assert len(best) == 2 and not set(current.row.seeds) & set(searched.session_seeds)
    plan = validation_plan(Overridden(searched), [current, *best])
    assert plan.sessions == 3 * 4 and len(list(plan.rows())) == 3
    assert plan.parts[0].name == "cartpole/ppo-search-validation"


def test_equal_configurations_are_trained_once() -> None:
    searched = SEEDS.search(gamma=choice(0.99, 0.98)).random(trials=6).build()
    assert [one.row.differs["agent.gamma"] for one in compared(searched, best=6)] == [0.99, 0.98]


def test_current_settings_do_not_have_the_axes_of_another_agent() -> None:
    search = SEEDS.search(when("agent", "sac", tau=log_uniform(1e-3, 1e-1)), agent=choice(PPO(), SAC()))
    searched = search.random(trials=4).build()
    history = History.of(record(searched, lambda point, frames, seed: 1.0))
    current, *_ = candidates(searched, best_trials(history, searched, 2), Overridden(searched))
    assert current.row.differs.keys() == {"agent"} and current.row.differs["agent"]["kind"] == "ppo"


def test_scores_are_compared_with_the_current_settings(searched: Experiment, tmp_path: Path) -> None:
    current, better, worse = compared(searched)
    finish(tmp_path, current, [100.0, 104.0, 98.0, 102.0])
    finish(tmp_path, better, [120.0, 124.0, 118.0, 122.0])
    finish(tmp_path, worse, [90.0, 101.0, 99.0, 98.0])
    results = validation_results([current, worse, better], Existing(tmp_path), maximize=True)
    assert [one.candidate for one in results] == [current, better, worse]
    assert results[1].difference == 20.0 and results[1].probability == 1.0
    assert 10 < results[1].interval.low < 20 < results[1].interval.high < 30
    assert results[2].difference < 0 and results[2].probability < 0.5
    assert math.isnan(results[0].difference)
    best = winner(results, maximize=True)
    assert best is not None and best.candidate == better
    assert "+20.0 against the current settings (95% interval" in verdict(results, maximize=True)
    flipped = validation_results([current, worse, better], Existing(tmp_path), maximize=False)
    assert [one.candidate for one in flipped] == [current, worse, better]
    assert flipped[1].probability > 0.5 and flipped[1].difference < 0
    assert "includes no difference" in verdict(flipped, maximize=False)


def test_a_session_that_has_not_ended_leaves_the_comparison_open(searched: Experiment, tmp_path: Path) -> None:
    current, better, worse = compared(searched)
    finish(tmp_path, current, [100.0, 104.0, 98.0, 102.0])
    finish(tmp_path, better, [120.0, 124.0, None, 122.0])
    results = validation_results([current, better, worse], Existing(tmp_path), maximize=True)
    assert [one.complete for one in results] == [True, False, False]
    assert [len(one.scores) for one in results] == [4, 3, 0]
    assert "not complete" in verdict(results, maximize=True)
    assert winner(results, maximize=True) == results[0]


def test_the_current_settings_may_be_the_best(searched: Experiment, tmp_path: Path) -> None:
    current, better, worse = compared(searched)
    for one in (current, better, worse):
        finish(tmp_path, one, [100.0] * 4)
    results = validation_results([current, better, worse], Existing(tmp_path), maximize=True)
    assert winner(results, maximize=True) == results[0]  # of equal ones
    assert verdict(results, maximize=True) == "no configuration of the search scores better than the current settings"
    assert results[1].data()["interval_95"] is None and results[1].data()["probability_of_improvement"] == 0.5
