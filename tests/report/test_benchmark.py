"""The benchmark table: status by rule, rejected entries, and the files of a report."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rldsl import PPO, Classic, MuJoCo, Random
from rldsl.report.benchmark_files import ReportFiles
from rldsl.report.benchmark_table import Benchmark, BenchmarkRow, make_benchmark, random_score
from rldsl.report.entry import Entry
from rldsl.report.learning_curve import Curve
from rldsl.report.result import Result, read_results, write_result
from rldsl.report.run_result import result_of
from rldsl.spec.budget import Budget
from rldsl.spec.experiment import Trial
from tests.report.finished import cartpole_entry, cartpole_plan, finish, rising

ACROBOT = Trial(agent=PPO(), env=Classic("Acrobot-v1"), budget=Budget(10_000))


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return result_of(finish(tmp_path / "runs", cartpole_plan(3), [rising(), rising(90.0), rising(110.0)]))


@pytest.mark.parametrize(
    ("target", "random", "status"),
    [
        (99.0, None, "solved"),
        (100.0, 20.0, "solved"),
        (120.0, 20.0, "close"),  # exactly 80% of the way
        (120.1, 20.0, "below"),
        (101.0, None, "below"),  # close needs the score of a random policy
        (101.0, 110.0, "below"),
        (None, 20.0, "no target"),
    ],
)
def test_status_by_rule(result: Result, target: float | None, random: float | None, status: str) -> None:
    assert BenchmarkRow(replace(cartpole_entry(3), target=target), result, (), random).status == status


def test_close_holds_for_negative_scores(result: Result) -> None:
    sessions = [replace(one, score=-180.0) for one in result.sessions]
    row = BenchmarkRow(Entry("acrobot/ppo", ACROBOT, (0, 1, 2), -100.0), replace(result, sessions=sessions), (), -500.0)
    assert row.progress == pytest.approx(0.8)
    assert row.status == "close"


def test_the_interval_is_of_the_mean_and_needs_three_seeds(result: Result) -> None:
    row = BenchmarkRow(cartpole_entry(3), result)
    assert row.score == 100.0
    assert row.interval is not None and row.interval.low < 100.0 < row.interval.high
    assert row.interval.low + row.interval.high == pytest.approx(200.0)
    assert BenchmarkRow(cartpole_entry(2), replace(result, sessions=result.sessions[:2])).interval is None


def test_evaluation_is_shown_beside_the_score_and_never_mixed_with_it(result: Result) -> None:
    curve = Curve(np.array([5_000.0, 10_000.0]), np.array([1.0, 7.0]))
    row = BenchmarkRow(
        cartpole_entry(3), replace(result, sessions=[replace(one, evaluation=curve) for one in result.sessions])
    )
    assert (row.score, row.evaluation) == (100.0, 7.0)
    one_without = [result.sessions[0], *(replace(one, evaluation=curve) for one in result.sessions[1:])]
    assert BenchmarkRow(cartpole_entry(3), replace(result, sessions=one_without)).evaluation is None


def test_a_rejected_result_leaves_its_entry_missing(result: Result) -> None:
    benchmark = make_benchmark([cartpole_entry(4)], [result])
    (row,) = benchmark.rows
    assert (row.status, row.result, row.rejections) == ("missing", None, ["seed 3 is missing"])


def test_results_of_other_settings_are_rejected_by_name(result: Result) -> None:
    entry = cartpole_entry(3)
    changed = replace(entry, trial=entry.trial.with_(agent=PPO(gamma=0.9)))
    (row,) = make_benchmark([changed], [result]).rows
    assert row.rejections == ["settings differ: agent.gamma is 0.99, the experiment has 0.9"]


def test_results_without_an_experiment_are_listed(result: Result) -> None:
    assert make_benchmark([], [result]).unknown == [result]


def test_the_random_score_is_that_of_a_random_policy_in_the_same_environment(result: Result) -> None:
    entry = cartpole_entry(3)
    baseline = replace(entry, experiment="cartpole/random", trial=entry.trial.with_(agent=Random()))
    scored = replace(result, experiment="cartpole/random", trial=baseline.trial.id, spec=baseline.trial.data())
    rows = make_benchmark([entry, baseline], [result, scored]).rows
    assert [row.random for row in rows] == [100.0, 100.0]
    more_envs = replace(entry, trial=entry.trial.with_(env=Classic("CartPole-v1", num_envs=2)))
    assert make_benchmark([more_envs, baseline], [scored]).rows[0].random == 100.0


def test_random_scores_of_the_package_are_of_default_settings() -> None:
    assert random_score(Classic("CartPole-v1", num_envs=3)) == pytest.approx(22.3, abs=1)
    assert random_score(MuJoCo("Hopper-v5")) is not None
    assert random_score(MuJoCo("Hopper-v5", options={"forward_reward_weight": 2.0})) is None


@pytest.fixture
def benchmark(result: Result, tmp_path: Path) -> Benchmark:
    write_result(tmp_path / "results" / "classic", result)
    missing = Entry("acrobot/ppo", ACROBOT, (0,), -100.0)
    rejected = replace(cartpole_entry(3), experiment="cartpole/b", seeds=(0, 1, 2, 3))
    results = [*read_results(tmp_path / "results"), replace(result, experiment="cartpole/b")]
    return make_benchmark([cartpole_entry(3), missing, rejected], results)


def test_the_page_has_scores_seeds_reference_missing_and_rejected(benchmark: Benchmark, tmp_path: Path) -> None:
    page = ReportFiles(benchmark, tmp_path / "results", tmp_path / "BENCHMARKS.md").texts()[tmp_path / "BENCHMARKS.md"]
    assert "| CartPole-v1 | PPO | cartpole/ppo | below | 100.0 | 75.2 .. 124.8 | 100.0, 90.0, 110.0 | 3 |" in page
    assert "[data](results/classic/cartpole-ppo.json)" in page
    assert "1. PPO in CartPole-v1, 100k frames, 1 seed, final evaluation: rl-baselines3-zoo" in page
    assert "- Acrobot-v1: acrobot/ppo" in page
    assert "| cartpole/b | seed 3 is missing |" in page
    assert "![Learning curves in CartPole-v1](results/plots/classic-cartpole-v1.svg)" in page


def test_all_files_are_the_same_for_the_same_results(benchmark: Benchmark, tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        files = ReportFiles(benchmark, tmp_path / name, tmp_path / name / "BENCHMARKS.md")
        written.append({path.name: path.read_bytes() for path in files.write()})
    assert written[0] == written[1]
    names = {"BENCHMARKS.md", "benchmarks.csv", "benchmarks.json", "report.html"}
    assert set(written[0]) == names | {"classic-cartpole-v1.svg", "classic-cartpole-v1.png"}


def test_a_random_policy_alone_is_not_drawn(result: Result, tmp_path: Path) -> None:
    trial = cartpole_entry(3).trial.with_(agent=Random())
    baseline = Entry("cartpole/random", trial, (0, 1, 2), None)
    scored = replace(result, experiment="cartpole/random", trial=trial.id, spec=trial.data())
    alone, both = make_benchmark([baseline], [scored]), make_benchmark([baseline, cartpole_entry(3)], [scored, result])
    assert not ReportFiles(alone, tmp_path, tmp_path / "x.md").figures()
    ((_, panel),) = ReportFiles(both, tmp_path, tmp_path / "x.md").figures().values()
    assert [line.label for line in panel.lines] == ["cartpole/random", "cartpole/ppo"]


def test_tables_for_programs(benchmark: Benchmark, tmp_path: Path) -> None:
    ReportFiles(benchmark, tmp_path / "out", tmp_path / "out" / "BENCHMARKS.md").write()
    first, second, third = csv.DictReader((tmp_path / "out" / "benchmarks.csv").read_text().splitlines())
    assert (first["score"], first["scores"], first["n"]) == ("100.0", "100.0; 90.0; 110.0", "3")
    assert (second["status"], second["score"]) == ("missing", "")
    assert third["rejections"] == "seed 3 is missing"
    data = json.loads((tmp_path / "out" / "benchmarks.json").read_text())
    (row,) = data["rows"]
    assert row["reference"]["protocol"] == "final evaluation"
    assert row["final_strength"] == pytest.approx(100.0 - row["random"])
    assert data["missing"] == ["acrobot/ppo"]
    assert data["rejected"] == {"cartpole/b": ["seed 3 is missing"]}


def test_files_that_do_not_match_the_results_are_noticed(benchmark: Benchmark, tmp_path: Path) -> None:
    files = ReportFiles(benchmark, tmp_path / "out", tmp_path / "BENCHMARKS.md")
    files.write()
    assert files.differences() == []
    (tmp_path / "out" / "plots" / "old.svg").write_text("<svg/>")
    (tmp_path / "out" / "plots" / "classic-cartpole-v1.png").unlink()
    (tmp_path / "BENCHMARKS.md").write_text("")
    assert files.differences() == [
        f"{tmp_path}/BENCHMARKS.md does not match the results",
        f"{tmp_path}/out/plots/classic-cartpole-v1.png does not match the results",
        f"{tmp_path}/out/plots/old.svg shows no result",
    ]
