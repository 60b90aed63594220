"""The command `graduate`: copies what passes the audit from a development repository to a public one."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.tables import echo, escape
from rldsl.cli.transfer import Repo, repository_of, show_refused, transfer_progress
from rldsl.plan.overrides import matches
from rldsl.report.words import count
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError

if TYPE_CHECKING:
    from rldsl.hub.repository import Repository
    from rldsl.report.benchmark_table import Benchmark, BenchmarkRow
    from rldsl.report.result import Result

EXPERIMENTS = Path("experiments")
RESULT = re.compile(r"results/[a-z0-9_-]+/[A-Za-z0-9._-]+\.json", re.ASCII)
"""The path of a result in a repository."""


def graduate(
    to: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The public repository; created if there is none.")],
    repo: Repo = None,
    only: given.Only = None,
    experiments: given.Experiments = None,
) -> int:
    """Copy sessions that pass the audit from a repository (--repo) to a public one, with the report, in one commit.

    Sessions are checked against the experiment files in --experiments, by default ./experiments.
    What the audit rejects is listed with the reasons, and is not copied.
    """
    from rldsl.hub.pull import Pull

    source, target = repository_of(repo), repository_of(to)
    if source.name == target.name:
        raise SpecError(f"{to} is the repository that the sessions are in: graduate needs another one")
    declared = experiments or (EXPERIMENTS if EXPERIMENTS.is_dir() else None)
    with tempfile.TemporaryDirectory() as folder:
        runs, results = Path(folder) / "runs", Path(folder) / "results"
        with transfer_progress("pulled") as progress:
            pulled = Pull(source, runs, progress=progress).run()
        show_refused(pulled.refused)
        benchmark = _audited(runs, declared, only or ())
        accepted = [row for row in benchmark.rows if row.result is not None]
        if not accepted:
            raise StoreError(f"nothing in {source} passes the audit: nothing was copied")
        if declared is None:
            echo("there is no folder experiments: sessions were checked against their own settings")
        _write_report(accepted, results, target)
        left = _show_others(benchmark, runs, only or ())
        _publish(accepted, runs, results, target)
    return int(bool(benchmark.rejected or left or pulled.refused))


def _audited(runs: Path, experiments: Path | None, only: Sequence[str]) -> Benchmark:
    """Audits the sessions of a run directory, and prints what is rejected."""
    from rldsl.cli.report_view import show_left_out, show_rejected
    from rldsl.cli.sources import Sources
    from rldsl.report.benchmark_table import make_benchmark

    sources = Sources(runs, experiments, only)
    sources.add(runs)
    benchmark = make_benchmark(sources.entries, sources.results)
    show_rejected(benchmark)
    show_left_out(sources)
    return benchmark


def _show_others(benchmark: Benchmark, runs: Path, only: Sequence[str]) -> int:
    """Prints the trials that have the name of an experiment and other settings; returns how many there are."""
    from rldsl.spec.budget import SEARCH_SEEDS_FROM
    from rldsl.store.runs import Runs

    known = {row.result.trial for row in benchmark.rows if row.result} | {one.trial for one in benchmark.unknown}
    rejected = {row.entry.experiment for row in benchmark.rejected}
    others = {
        one.trial: one.recorded().experiment
        for one in Runs(runs).sessions()
        if one.trial not in known and (one.seed or 0) < SEARCH_SEEDS_FROM
    }
    chosen = {name for name in others.values() if not only or any(matches(one, name) for one in only)}
    left = {trial: name for trial, name in others.items() if name in chosen - rejected}
    for trial, name in left.items():
        echo(f"[red]rejected[/red] {escape(name)}: trial {trial} does not have the settings of the experiment")
    return len(left)


def _write_report(accepted: Sequence[BenchmarkRow], folder: Path, target: Repository) -> None:
    """Writes the results, together with those that the target has, and the report of all of them."""
    from rldsl.cli.report_view import PAGE
    from rldsl.report.benchmark_files import ReportFiles
    from rldsl.report.benchmark_table import make_benchmark
    from rldsl.report.entry import entry_of
    from rldsl.report.result import file_name, read_results, write_result

    _download_results(target, folder.parent)
    entries = {}
    for row in accepted:
        assert row.result is not None
        write_result(folder / row.entry.family, row.result)
        entries[f"{row.entry.family}/{file_name(row.entry.experiment)}"] = row.entry
    results = read_results(folder)
    declared = [entries.get(_name(result, folder)) or entry_of(result) for result in results]
    benchmark = make_benchmark(declared, results)
    ReportFiles(replace(benchmark, unknown=()), folder, folder.parent / PAGE).write()


def _name(result: Result, folder: Path) -> str:
    assert result.path is not None
    return result.path.relative_to(folder).as_posix()


def _download_results(repository: Repository, folder: Path) -> None:
    listing = repository.files(["results"])
    for path in filter(RESULT.fullmatch, listing.files):
        repository.download(path, listing.revision, folder)


def _publish(accepted: Sequence[BenchmarkRow], runs: Path, results: Path, target: Repository) -> None:
    """Pushes the sessions of accepted results with the report."""
    from rldsl.cli.push import benchmark_of, result_content
    from rldsl.hub.push import Push
    from rldsl.report.dataset_card import DatasetCard
    from rldsl.report.dataset_tables import require_pyarrow
    from rldsl.store.runs import Runs

    require_pyarrow()
    trials = {(row.result.trial, one.seed) for row in accepted if row.result for one in row.result.sessions}
    sessions = [one for one in Runs(runs).sessions() if (one.trial, one.seed) in trials]
    names = [one.path.relative_to(runs).as_posix() for one in sessions]
    with transfer_progress("copied") as progress:
        job = Push(target, runs, DatasetCard(target.name), private=False, audited=True, progress=progress)
        pushed = job.run_at_once(names, result_content(results), benchmark_of(results))
    done = f"{count(len(accepted), 'result')} with {count(len(pushed.sessions), 'session')} copied"
    same = f", {pushed.unchanged:,} unchanged" if pushed.unchanged else ""
    echo(f"{done}{same}: {escape(target.url)}")
