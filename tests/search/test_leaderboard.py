"""The leaderboard: order, states, values."""

from __future__ import annotations

import json
import math

from rldsl.search.history import History
from rldsl.search.leaderboard import best_trials, leaderboard
from tests.search.recorded import AXES, CARTPOLE, asha, record


def test_the_rung_comes_first_then_the_value_and_failed_trials_are_last() -> None:
    searched = asha(12)
    rows = leaderboard(History.of(record(searched, fails=(3, 7))), searched)
    assert len(rows) == 12 and [row.state for row in rows[-2:]] == ["failed", "failed"]
    assert [row.number for row in rows[-2:]] == [3, 7] and "diverged" in (rows[-1].reason or "")
    ended = rows[:-2]
    assert ended[0].state == "done" and ended[0].rung == 2
    assert {row.state for row in ended} == {"done", "paused"}
    keys = [(-(row.rung or 0), -(row.value or 0.0)) for row in ended]
    assert keys == sorted(keys)


def test_a_search_that_runs_shows_which_rung_a_trial_is_trained_for() -> None:
    searched = asha(12)
    journal = record(searched)
    promoted = next(n for n, event in enumerate(journal) if event["event"] == "started" and event["rung"] == 1)
    rows = {row.number: row for row in leaderboard(History.of(journal[: promoted + 1]), searched)}
    row = rows[journal[promoted]["trial"]]
    assert (row.state, row.rung, row.target) == ("running", 0, 1)
    assert row.value is not None
    (first,) = leaderboard(History.of(journal[:1]), searched)
    assert (first.state, first.rung, first.value) == ("new", None, None)


def test_seeds_are_averaged_and_a_seed_without_a_value_leaves_none() -> None:
    searched = CARTPOLE.search(**AXES).random(trials=2).build()
    journal = record(searched, lambda point, frames, seed: float(seed % 10) if point["agent.gamma"] > 0 else 0.0)
    rows = leaderboard(History.of(journal), searched)
    assert [(row.value, row.seeds, row.state) for row in rows] == [(0.5, 2, "done")] * 2
    assert [row.number for row in rows] == [0, 1]  # a tie
    journal = record(searched, lambda point, frames, seed: math.nan if seed % 10 else 1.0)
    assert [row.value for row in leaderboard(History.of(journal), searched)] == [None, None]
    assert best_trials(History.of(journal), searched, 3) == []


def test_the_best_are_never_failed_ones() -> None:
    searched = asha(6)
    best = best_trials(History.of(record(searched, fails=range(4))), searched, 3)
    assert [row.number in (4, 5) for row in best] == [True, True]


def test_rows_are_json() -> None:
    searched = asha(6)
    rows = [row.data() for row in leaderboard(History.of(record(searched)), searched)]
    assert json.loads(json.dumps(rows)) == rows
    assert rows[0].keys() == {"trial", "id", "settings", "rung", "seeds", "value", "state", "seconds", "reason"}
