"""The command `results`: `add` converts finished sessions into committed results, `check` compares tables and plots."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rldsl.cli.report_view import report_files, show_left_out, show_rejected
from rldsl.cli.sources import Sources
from rldsl.cli.tables import echo, escape
from rldsl.report.benchmark_table import BenchmarkRow, make_benchmark
from rldsl.report.result import file_name, read_result, write_result
from rldsl.report.words import count
from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError


def add_results(sources: Sources, folder: Path) -> int:
    """Audits finished sessions and writes the results that are accepted; returns 1 if any is rejected or unreadable."""
    for entry in sources.entries:
        entry.refuse_overrides()
        if entry.differs:
            raise SpecError(f"{entry.experiment} is a grid: declare the setting that should be in the benchmark")
    benchmark = make_benchmark(sources.entries, sources.results)
    accepted = [row for row in benchmark.rows if row.result is not None]
    for row in accepted:
        _add(row, folder)
    rejected = show_rejected(benchmark)
    show_left_out(sources)
    if not accepted and not rejected:
        raise StoreError(f"no session of these experiments is in {sources.runs}")
    if accepted:
        echo(f"`rldsl report {escape(shlex.quote(str(folder)))}` updates the tables and plots")
    return int(rejected > 0 or sources.unreadable > 0)


def _add(row: BenchmarkRow, folder: Path) -> None:
    assert row.result is not None
    path = folder / row.entry.family / file_name(row.entry.experiment)
    new = row.result.data()
    if path.exists() and _digest(path) == new["digest"]:
        echo(f"unchanged {escape(str(path))}")
        return
    word = "replaced" if path.exists() else "added"
    write_result(path.parent, row.result)
    echo(f"{word} {escape(str(path))}: {row.score:.1f}, {count(len(row.result.sessions), 'seed')}")


def _digest(path: Path) -> str | None:
    try:
        return str(read_result(path).data()["digest"])
    except StoreError:  # damaged, or of an earlier format
        return None


def check_results(sources: Sequence[str] | None, folder: Path, experiments: Path | None) -> int:
    """Compares BENCHMARKS.md, tables and plots with the results; returns 1 if any does not match."""
    if sources:
        raise SpecError("`rldsl results check` takes no files: --results names the folder")
    found = Sources(folder, experiments)
    found.add(folder)
    benchmark = make_benchmark(found.entries, found.results)
    wrong = report_files(benchmark, folder, None).differences()
    for sentence in wrong:
        echo(f"[red]{escape(sentence)}[/red]")
    if wrong:
        echo(f"`rldsl report {escape(shlex.quote(str(folder)))}` writes them")
        return 1
    missing = sum(row.status == "missing" for row in benchmark.rows)
    echo(f"{count(len(found.results), 'result')}, {count(missing, 'missing experiment')}: tables and plots match")
    return 0
