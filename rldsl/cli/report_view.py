"""The command `report`: scores as a table in the terminal, and the files of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rldsl.cli.sources import Sources
from rldsl.cli.tables import echo, escape, table
from rldsl.report.benchmark_files import ReportFiles
from rldsl.report.benchmark_page import number
from rldsl.report.benchmark_table import Benchmark, BenchmarkRow, make_benchmark
from rldsl.report.words import amount, count, duration, settings_text

PAGE = "BENCHMARKS.md"
STYLES = {"solved": "green", "close": "yellow", "below": "red"}
MOST_MISSING = 8


def show_report(sources: Sources, out: Path | None) -> int:
    """Prints the scores, what was left out and why; writes a report. Returns 1 if every result was rejected."""
    benchmark = make_benchmark(sources.entries, sources.results)
    measured = [row for row in benchmark.rows if row.result is not None]
    if measured:
        _show_scores(measured)
    rejected = show_rejected(benchmark)
    show_left_out(sources)
    _show_missing(benchmark)
    if not measured:
        found = benchmark.rejected or sources.left_out
        echo("nothing to report" if found else "no session with these settings is done yet")
        return int(rejected > 0)
    files = report_files(benchmark, sources.folder, out)
    echo(f"[dim]writing {files.page} ...[/dim]")
    written = files.write()
    echo(f"wrote {count(len(written), 'file')}: {files.page}, and in {files.folder} tables, plots and report.html")
    return 0


def report_files(benchmark: Benchmark, results: Path | None, out: Path | None) -> ReportFiles:
    """Where the files go: `out`; without it, for a results folder that folder, and the page beside it."""
    listed = replace(benchmark, rows=[row for row in benchmark.rows if not row.entry.differs])
    if out is None and results is not None:
        return ReportFiles(listed, results, results.parent / PAGE)
    folder = out or Path("report")
    return ReportFiles(listed, folder, folder / PAGE)


def _show_scores(rows: Sequence[BenchmarkRow]) -> None:
    names = ["experiment", "differs", "status", "n", "score", "95% interval", "evaluation", "target", "frames", "time"]
    drop = ("time", "evaluation", "n", "frames", "target")
    table(names, [_cells(row) for row in rows], right=names[3:], drop=drop, wrap="differs")
    for row in rows:
        assert row.result is not None
        each = ", ".join(f"{one.seed}: {number(one.score)}" for one in row.result.sessions)
        echo(f"[dim]{escape(_label(row))} by seed  {each}[/dim]")
        for one in row.result.sessions:
            for reason in one.fallbacks:
                echo(f"[yellow]{escape(_label(row))} seed {one.seed}: {escape(reason)}[/yellow]")
    echo("[dim]score: mean over seeds of the last 100 log points, each the mean of 100 training episodes[/dim]")


def _cells(row: BenchmarkRow) -> list[str]:
    assert row.result is not None
    seconds = [one.seconds for one in row.result.sessions]
    style = STYLES.get(row.status)
    return [
        row.entry.experiment,
        escape(_differs(row)),
        f"[{style}]{row.status}[/{style}]" if style else row.status,
        str(len(row.result.sessions)),
        number(row.score),
        f"{number(row.interval.low)} .. {number(row.interval.high)}" if row.interval else "",
        number(row.evaluation),
        "" if row.entry.target is None else f"{row.entry.target:g}",
        amount(row.entry.frames),
        duration(sum(seconds) / len(seconds)),
    ]


def show_rejected(benchmark: Benchmark) -> int:
    """Prints each rejection of the audit; returns how many results were rejected."""
    for row in benchmark.rejected:
        for reason in row.rejections:
            echo(f"[red]rejected[/red] {escape(_label(row))}: {escape(reason)}")
    for one in benchmark.unknown:
        echo(f"[red]rejected[/red] {escape(one.experiment)}: no experiment has this name")
    return len(benchmark.rejected) + len(benchmark.unknown)


def show_left_out(sources: Sources) -> None:
    """Prints a line for each search of a run directory."""
    for name, trials in sorted(sources.left_out.items()):
        echo(f"left out {count(trials, 'trial')} of the search {escape(name)}: they are not benchmark results")


def _show_missing(benchmark: Benchmark) -> None:
    names = [_label(row) for row in benchmark.rows if row.status == "missing" and not row.rejections]
    if names:
        more = f" and {len(names) - MOST_MISSING:,} more" if len(names) > MOST_MISSING else ""
        echo(f"missing: {escape(', '.join(names[:MOST_MISSING]))}{more}")


def _label(row: BenchmarkRow) -> str:
    differs = _differs(row)
    return f"{row.entry.experiment} ({differs})" if differs else row.entry.experiment


def _differs(row: BenchmarkRow) -> str:
    return settings_text(row.entry.differs)
