"""Curves of trials: read from run directories and results, joined, smoothed and labelled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rldsl import A2C, PPO, Classic, experiment, grid
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from rldsl.report.curve_panels import View, make_panels, smoothed
from rldsl.report.learning_curve import Curve, join
from rldsl.report.panel import UPDATES, WALL_TIME
from rldsl.report.result import Result, SessionResult
from rldsl.report.trial_curves import TrialCurves, of_plan, of_results, of_sessions
from rldsl.spec.errors import SpecError
from rldsl.spec.gin_text import session_gin
from rldsl.store.metrics import MetricsWriter
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir

FRAMES = tuple(range(1000, 10_001, 1000))
BASE = experiment("cartpole").env(Classic("CartPole-v1", num_envs=1)).frames(1e4).seeds(2).target(450)
PPO_ONE = BASE.agent(PPO(rollout=500, minibatch=100, epochs=2))
CLIPS = PPO_ONE.search(clip=grid(0.1, 0.3)).named("cartpole/clips")
A2C_ONE = BASE.agent(A2C())


def written(runs: Path, *builders: ExperimentBuilder) -> Plan:
    """Sessions whose return is, in thousands of frames, `(trial + 1) * frame + seed`."""
    plan = make_plan([Overridden(one.build()) for one in builders])
    for number, row in enumerate(plan.rows()):
        for session in row.sessions():
            directory = SessionDir.create(runs, session.directory, session.record(), session_gin(session))
            writer = MetricsWriter(directory.metrics, ("frame", "seconds", "episode_return", "q"))
            for frame in FRAMES[session.seed :]:
                value = (number + 1) * frame / 1000 + session.seed
                writer.write({"frame": frame, "seconds": frame / 10, "episode_return": value, "q": None})
            directory.journal.append("started", frame=0)
            directory.journal.append("done", frame=10_000)
    return plan


def read(runs: Path, *builders: ExperimentBuilder) -> list[TrialCurves]:
    return of_plan(written(runs, *builders), Existing(runs), pytest.fail)


def test_a_panel_shows_the_mean_of_all_experiments_of_an_environment(tmp_path: Path) -> None:
    pendulum = experiment("pendulum").env(Classic("Pendulum-v1")).agent(PPO()).frames(1e4)
    first, second = make_panels(read(tmp_path, PPO_ONE, A2C_ONE, pendulum), View())
    assert (first.title, second.title, first.target, second.target) == ("CartPole-v1", "Pendulum-v1", 450, None)
    ppo, a2c = first.lines
    assert (ppo.label, a2c.label) == ("ppo", "a2c") and ppo.color != a2c.color
    assert ppo.x.tolist() == list(FRAMES[1:]), "from the frame on that both seeds have"
    assert ppo.y[-1] == 10.5 and a2c.y[-1] == 20.5
    assert ppo.low is not None and ppo.high is not None and (ppo.low[-1], ppo.high[-1]) == (10, 11)
    assert (first.note, first.band) == ("mean of 2 seeds", "lowest to highest seed")
    assert (second.note, second.band) == ("one seed", "")


def test_a_run_directory_is_read_without_its_experiment_file(tmp_path: Path) -> None:
    plan = written(tmp_path, PPO_ONE, A2C_ONE)
    (from_runs,), (from_plan,) = (
        make_panels(trials, View())
        for trials in (
            of_sessions(Runs(tmp_path).sessions(), pytest.fail),
            of_plan(plan, Existing(tmp_path), pytest.fail),
        )
    )
    assert {line.label: line.y.tolist() for line in from_runs.lines} == {
        line.label: line.y.tolist() for line in from_plan.lines
    }
    assert from_runs.target == 450


def test_trials_of_an_experiment_are_told_apart_by_their_settings(tmp_path: Path) -> None:
    (panel,) = make_panels(read(tmp_path, CLIPS), View())
    assert [line.label for line in panel.lines] == ["clips clip=0.1", "clips clip=0.3"]
    (panel,) = make_panels(read(tmp_path, CLIPS), View(top=1))
    assert [line.label for line in panel.lines] == ["clips clip=0.3"], "the highest last value"


def test_individual_seeds(tmp_path: Path) -> None:
    trials = read(tmp_path, PPO_ONE, A2C_ONE)
    (panel,) = make_panels(trials[:1], View(statistic="seeds"))
    assert [line.label for line in panel.lines] == ["ppo seed 0", "ppo seed 1"]
    assert [line.y[-1] for line in panel.lines] == [10, 11] and len({line.color for line in panel.lines}) == 2
    (panel,) = make_panels(trials, View(statistic="seeds"))
    assert [line.label for line in panel.lines] == ["ppo", "ppo", "a2c", "a2c"]
    assert panel.lines[0].color == panel.lines[1].color != panel.lines[2].color and panel.note == "each seed"


def test_the_median_is_not_the_mean(tmp_path: Path) -> None:
    (panel,) = make_panels(read(tmp_path, PPO_ONE.seeds(3)), View(statistic="median"))
    assert panel.lines[0].y[-1] == 11 and panel.note == "median of 3 seeds"


def test_wall_time_and_updates(tmp_path: Path) -> None:
    trials = read(tmp_path, PPO_ONE)
    (panel,) = make_panels(trials, View(axis=WALL_TIME))
    assert panel.lines[0].x[-1] == 1000 and panel.axis == WALL_TIME
    (panel,) = make_panels(trials, View(axis=UPDATES))
    assert panel.lines[0].x.tolist() == [20 * number for number in range(2, 11)], "10 updates for 500 frames"


def test_smoothing_is_a_mean_of_the_last_log_points_and_named(tmp_path: Path) -> None:
    assert smoothed(np.array([1.0, 3.0, 5.0, 10.0]), 2).tolist() == [1, 2, 4, 7.5]
    assert smoothed(np.array([1.0, 3.0]), 1).tolist() == [1, 3]
    (panel,) = make_panels(read(tmp_path, PPO_ONE), View(smooth=3))
    assert panel.smoothing == "smoothed: mean of 3 log points" and panel.lines[0].y[-1] == pytest.approx(9.5)


def test_unknown_metrics_and_missing_values_are_a_sentence(tmp_path: Path) -> None:
    trials = read(tmp_path, PPO_ONE)
    with pytest.raises(SpecError, match=r"no session logs the metric episode_retrun; did you mean episode_return"):
        make_panels(trials, View(metric="episode_retrun"))
    with pytest.raises(SpecError, match=r"1 trial found, but none has a value of q yet"):
        make_panels(trials, View(metric="q"))


def test_results_are_drawn_like_sessions(tmp_path: Path) -> None:
    spec = PPO_ONE.build().base().data()
    curves = [Curve.of(FRAMES, [seed + frame / 1000 for frame in FRAMES]) for seed in (0, 2)]
    sessions = [
        SessionResult(seed, 10.0, 10_000, 60.0, curve, Curve.of([5000], [7.0 + seed]))
        for seed, curve in enumerate(curves)
    ]
    result = Result("cartpole/ppo", "af2df68c25fc", spec, 450.0, sessions)
    (panel,) = make_panels(of_results([result]), View())
    assert panel.title == "CartPole-v1" and panel.lines[0].y[-1] == 11 and panel.target == 450
    (panel,) = make_panels(of_results([result]), View(metric="eval_return"))
    assert panel.lines[0].y.tolist() == [7.5] and panel.target is None
    old = Result("cartpole/ppo", "af2df68c25fc", spec, 450.0, [], joined=join(curves))
    (panel,) = make_panels(of_results([old]), View())
    assert panel.lines[0].y[-1] == 11 and panel.note == "mean of 2 seeds"
    with pytest.raises(SpecError, match="keeps only the mean"):
        make_panels(of_results([old]), View(axis=WALL_TIME))
