"""The committed results: audited against `experiments/`, and BENCHMARKS.md and the plots match them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rldsl.cli.report_view import report_files
from rldsl.cli.sources import Sources
from rldsl.report.benchmark_table import RANDOM_SCORES, Benchmark, make_benchmark
from rldsl.report.result import result_files
from tests.project import ROOT

RESULTS = ROOT / "results"
RERUN = {"half-cheetah/ppo"}
"""Results of earlier settings, from before `log_std=-0.5`: rejected until they are run again."""
LARGEST = 30_000
"""Bytes of a session."""


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    sources = Sources(ROOT / "runs")
    sources.add(RESULTS)
    return make_benchmark(sources.entries, sources.results)


def test_tables_and_plots_match_the_results(benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert report_files(benchmark, Path("results"), None).differences() == [], "run `rldsl report results`"


def test_every_result_passes_the_audit(benchmark: Benchmark) -> None:
    assert {row.entry.experiment for row in benchmark.rejected} <= RERUN
    assert benchmark.unknown == []


def test_every_experiment_has_a_result_or_is_listed_as_missing(benchmark: Benchmark) -> None:
    page = (ROOT / "BENCHMARKS.md").read_text()
    assert len(benchmark.rows) > 292
    for row in benchmark.rows:
        group, _, name = row.entry.experiment.rpartition("/")
        assert (f" {group}/" in page) and name in page, row.entry.experiment


@pytest.mark.parametrize("path", list(result_files(RESULTS)), ids=lambda path: path.stem)
def test_a_result_is_small(path: Path, benchmark: Benchmark) -> None:
    (row,) = (row for row in benchmark.rows if row.entry.experiment.replace("/", "-") == path.stem)
    assert row.entry.family == path.parent.name
    assert path.stat().st_size < LARGEST * len(row.entry.seeds)


def test_the_random_scores_of_the_package_are_those_of_the_results(benchmark: Benchmark) -> None:
    measured = [row for row in benchmark.rows if row.entry.trial.agent.kind == "random" and row.result is not None]
    expected = {row.entry.trial.env.id: f"{row.score:.6g}" for row in measured}
    with RANDOM_SCORES.open(newline="") as file:
        shipped = {row["env"]: row["score"] for row in csv.DictReader(file)}
    assert shipped == expected, "run `make tables`"
