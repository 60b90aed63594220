"""Scores, intervals and curves of finished sessions, also where a session ended no episode."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rldsl.maths.statistics import interval_of_mean
from rldsl.plan.existing import Existing
from rldsl.report.outcome import CURVE_POINTS, outcomes
from tests.project import Project
from tests.report.finished import Points, cartpole_plan, finish, outcome_of


def flat(value: float, points: int = 10) -> Points:
    return [(frame * 100, value) for frame in range(1, points + 1)]


def test_the_score_is_the_mean_over_seeds_of_the_last_hundred_log_points(tmp_path: Path) -> None:
    first = [(frame, 0.0 if frame <= 50 else 10.0) for frame in range(1, 151)]
    data = outcome_of(tmp_path, first, flat(30.0)).data()
    assert data["score"] == 20.0
    assert data["seeds"]["0"] == {"score": 10.0, "seconds": 1.5}
    assert data["seeds"]["1"] == {"score": 30.0, "seconds": 10.0}
    assert (data["n"], data["target"], data["metric"]) == (2, 450.0, "total_reward_ma")


def test_sessions_that_are_not_done_are_left_out(tmp_path: Path) -> None:
    plan = cartpole_plan(3)
    finish(tmp_path, plan, [flat(10.0), flat(30.0)])
    (outcome,) = outcomes(plan, Existing(tmp_path))
    assert [run.seed for run in outcome.runs] == [0, 1]
    assert outcomes(cartpole_plan(3), Existing(tmp_path / "nothing")) == []


def test_the_interval_is_that_of_the_score(tmp_path: Path) -> None:
    scores = [10.0, 20.0, 30.0, 40.0, 100.0]
    data = outcome_of(tmp_path, *map(flat, scores)).data()
    assert data["interval_95"] == list(interval_of_mean(scores))
    assert np.mean(data["interval_95"]) == pytest.approx(data["score"])


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    data = outcome_of(tmp_path, flat(30.0)).data()
    assert data["interval_95"] is None
    assert data["score"] == data["interquartile_mean"] == 30.0


def test_a_long_curve_is_downsampled_and_keeps_both_ends(tmp_path: Path) -> None:
    points = [(frame, float(frame)) for frame in range(1, 1001)]
    curve = outcome_of(tmp_path, points, points).data()["curve"]
    assert len(curve["frame"]) == CURVE_POINTS
    assert (curve["frame"][0], curve["frame"][-1]) == (1, 1000)
    assert curve["mean"] == curve["low"] == curve["high"] == curve["frame"]


def test_a_short_curve_is_kept_as_it_is(tmp_path: Path) -> None:
    curve = outcome_of(tmp_path, flat(10.0, points=5), flat(30.0, points=5)).data()["curve"]
    assert curve == {"frame": [100, 200, 300, 400, 500], "mean": [20.0] * 5, "low": [10.0] * 5, "high": [30.0] * 5}


def test_seeds_are_joined_by_frame_not_by_index(tmp_path: Path) -> None:
    """The first episode of one seed ends two log points later than that of the other."""
    early = [(frame, float(frame)) for frame in (80, 160, 240, 320, 400)]
    late = [(80, None), (160, None), (240, 240.0), (320, 320.0), (400, 400.0)]
    curve = outcome_of(tmp_path, early, late).data()["curve"]
    assert curve["frame"] == [240, 320, 400]
    assert curve["mean"] == curve["low"] == curve["high"] == [240.0, 320.0, 400.0]


def test_seeds_with_different_log_frames_are_interpolated(tmp_path: Path) -> None:
    even, odd = [(frame, float(frame)) for frame in (100, 200, 300)], [(frame, float(frame)) for frame in (150, 250)]
    curve = outcome_of(tmp_path, even, odd).data()["curve"]
    assert curve["frame"] == [150, 200, 250]
    assert curve["low"] == curve["high"] == [150.0, 200.0, 250.0]


def test_seeds_without_common_frames_have_no_curve(tmp_path: Path) -> None:
    curve = outcome_of(tmp_path, [(100, 1.0), (200, 2.0)], [(300, 3.0)]).data()["curve"]
    assert curve == {"frame": [], "mean": [], "low": [], "high": []}


@pytest.mark.parametrize("points", [[(100, None), (200, None)], []])
def test_a_session_that_ended_no_episode_has_no_score(tmp_path: Path, points: Points) -> None:
    outcome = outcome_of(tmp_path, points)
    data = outcome.data()
    assert outcome.seeds_without_episode == [0]
    assert (data["score"], data["interquartile_mean"], data["interval_95"]) == (None, None, None)
    assert data["curve"]["frame"] == []
    assert "NaN" not in json.dumps(data)


def test_one_seed_without_an_episode_leaves_the_trial_without_a_score(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, flat(10.0), [(100, None)], flat(30.0))
    data = outcome.data()
    assert outcome.seeds_without_episode == [1]
    assert (data["score"], data["interval_95"]) == (None, None)
    assert [data["seeds"][seed]["score"] for seed in "012"] == [10.0, None, 30.0]
    assert set(data["curve"]["mean"]) == {20.0}, "the curve is that of the other seeds"
    assert np.isnan(outcome.scores).tolist() == [False, True, False]


def test_report_says_that_no_episode_ended(project: Project) -> None:
    """An episode of Pendulum has 200 steps."""
    project.write(
        """
        from rldsl import Classic, Random, experiment, main

        pendulum = experiment("pendulum").env(Classic("Pendulum-v1", num_envs=1)).agent(Random()).frames(100).seeds(2)

        if __name__ == "__main__":
            main(pendulum)
        """
    )
    assert project.python("exp.py").returncode == 0
    report = project.python("exp.py", "report", "--out", "results")
    assert report.returncode == 0, report.stderr
    assert "pendulum/random has no score: no episode ended with seed 0, 1" in report.stdout
    (file,) = (project.root / "results").glob("*.json")
    assert json.loads(file.read_text())["score"] is None


def test_the_table_shows_every_seed(project: Project) -> None:
    project.write(
        """
        from rldsl import Classic, Random, experiment, main

        cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).agent(Random()).frames(2e3).seeds(3)

        if __name__ == "__main__":
            main(cartpole)
        """
    )
    assert project.python("exp.py").returncode == 0
    report = project.python("exp.py", "report").stdout
    names, row = (line.split("  ") for line in report.splitlines()[:2])
    cells = dict(zip(filter(None, map(str.strip, names)), filter(None, map(str.strip, row)), strict=True))
    seeds = [float(score) for score in cells["seeds"].split()]
    assert len(seeds) == int(cells["n"]) == 3
    low, high = map(float, cells["95%"].split(" .. "))
    score = float(cells["score"])
    assert low < score < high and score == pytest.approx(np.mean(seeds), abs=0.1)
    assert "has no score" not in report
