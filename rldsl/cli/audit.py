"""The command `audit`: whether finished sessions, or committed results, are what their experiments declare."""

from __future__ import annotations

import json

from rldsl.cli.report_view import show_left_out, show_rejected
from rldsl.cli.sources import Sources
from rldsl.cli.tables import echo, escape
from rldsl.report.audit import unverified
from rldsl.report.benchmark_table import Benchmark, make_benchmark
from rldsl.report.words import count


def show_audit(sources: Sources, as_json: bool) -> int:
    """Prints a line for each result; returns 1 if any was rejected or could not be read."""
    benchmark = make_benchmark(sources.entries, sources.results)
    if as_json:
        print(json.dumps(_data(benchmark), indent=2))  # noqa: T201
        return int(bool(benchmark.rejected or benchmark.unknown or sources.unreadable))
    accepted = [row for row in benchmark.rows if row.result is not None]
    for row in accepted:
        assert row.result is not None
        missing = unverified(row.result)
        note = f"; not recorded: {', '.join(missing)}" if missing else ""
        echo(f"[green]accepted[/green] {escape(row.entry.experiment)}{note}")
    rejected = show_rejected(benchmark)
    show_left_out(sources)
    missing_rows = sum(row.status == "missing" and not row.rejections for row in benchmark.rows)
    echo(f"{count(len(accepted) + rejected, 'result')}: {len(accepted)} accepted, {rejected} rejected")
    if missing_rows:
        echo(f"{count(missing_rows, 'experiment')} without a result")
    return int(rejected > 0 or sources.unreadable > 0)


def _data(benchmark: Benchmark) -> list[dict[str, object]]:
    rows = [row for row in benchmark.rows if row.result is not None or row.rejections]
    return [
        {
            "experiment": row.entry.experiment,
            "trial": row.entry.trial.id,
            "accepted": row.result is not None,
            "rejections": list(row.rejections),
            "unverified": unverified(row.result) if row.result else [],
        }
        for row in rows
    ] + [
        {"experiment": one.experiment, "trial": one.trial, "accepted": False, "rejections": ["no experiment"]}
        for one in benchmark.unknown
    ]
