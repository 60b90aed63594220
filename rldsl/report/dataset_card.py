"""The files that describe a dataset repository: README.md, Parquet tables and learning curves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rldsl.hub.index import Index, IndexRow
from rldsl.hub.push import Changes
from rldsl.report.benchmark_page import markdown_table, number
from rldsl.report.benchmark_table import Benchmark
from rldsl.report.dataset_tables import (
    CONFIGS,
    RUNS,
    SEEDS,
    curves_of,
    curves_table,
    run_data,
    runs_table,
    seeds_table,
    shard_of,
    trials_of,
)
from rldsl.report.figures import figure_bytes
from rldsl.report.learning_curve import join
from rldsl.report.panel import Line, Panel
from rldsl.report.words import amount, count

CARD = "README.md"
PLOT = "learning-curve.png"
MOST_ROWS = 300
"""Rows of the table in the card; the Parquet table has all."""
COLUMNS = ("environment", "experiment", "state", "score", "95% interval", "n", "frames", "target", "curve")
SCORE = """\
The score of a seed is its final `episode_return_ma`: the mean of the last 100 log points, each the mean return of the
last 100 training episodes. The table shows the mean over seeds and its 95% confidence interval.
"""


class DatasetCard:
    """Describes the sessions of a repository."""

    def __init__(self, repository: str) -> None:
        self.repository = repository

    def __call__(self, changes: Changes) -> dict[str, bytes]:
        """The files that change together with some sessions."""
        files = {CARD: self.text(changes.index).encode()}
        if changes.index.rows:
            files |= {RUNS: runs_table(changes.index), SEEDS: seeds_table(changes.index)}
        if changes.staged:
            files |= dict(_curves(changes))
        return files

    def text(self, index: Index) -> str:
        """README.md."""
        from huggingface_hub import DatasetCardData

        tags = ["reinforcement-learning", "deep-reinforcement-learning", "rldsl"]
        facts: dict[str, Any] = {"configs": list(CONFIGS)} if index.rows else {}
        data = DatasetCardData(pretty_name=self.repository.partition("/")[2], tags=tags, **facts)
        parts = [f"---\n{data.to_yaml()}\n---\n", f"# {self.repository.partition('/')[2]}\n", self._introduction(index)]
        if index.benchmark:
            parts += ["## Benchmark\n", index.benchmark]
        if index.rows:
            parts += ["## Sessions\n", SCORE, *_sessions(index), self._usage()]
        return "\n".join(parts)

    def _introduction(self, index: Index) -> str:
        trials = len({row.trial for row in index.rows.values()})
        sessions = f"{count(len(index.rows), 'session')} of {count(trials, 'trial')}" if index.rows else "Results"
        return f"{sessions} of deep reinforcement learning, trained with `rldsl`.\n"

    def _usage(self) -> str:
        name = self.repository
        return (
            "## Use\n\n```python\nfrom datasets import load_dataset\n\n"
            f'runs = load_dataset("{name}", "runs")      # a row for each trial\n'
            f'seeds = load_dataset("{name}", "seeds")    # a row for each session\n'
            f'curves = load_dataset("{name}", "curves")  # a row for each log point\n```\n\n'
            f"```bash\nrldsl list --hub --repo {name}\nrldsl pull --repo {name}\n```\n\n"
            "Each session has its complete settings (`session.json`), code and packages (`provenance.json`), metrics,\n"
            "checkpoints (safetensors) and `SHA256SUMS`. Reading them executes no code.\n"
        )


def benchmark_markdown(benchmark: Benchmark) -> str:
    """The accepted results of a benchmark as a table."""
    names = ("environment", "experiment", "status", "score", "95% interval", "n", "frames", "target")
    rows = [
        [
            *(row.entry.env, row.entry.experiment, row.status, number(row.score)),
            f"{number(row.interval.low)} .. {number(row.interval.high)}" if row.interval else "",
            *(str(len(row.result.sessions)), amount(row.entry.frames)),
            "" if row.entry.target is None else f"{row.entry.target:g}",
        ]
        for family in benchmark.families
        for row in benchmark.of(family)
        if row.result is not None
    ]
    return (
        f"{markdown_table(names, rows, names[3:])}\nCurves, references and all seeds: [BENCHMARKS.md](BENCHMARKS.md).\n"
    )


def _sessions(index: Index) -> Iterator[str]:
    trials = list(trials_of(index))
    yield markdown_table(COLUMNS, [_cells(trial, rows) for trial, rows in trials[:MOST_ROWS]], COLUMNS[3:8])
    if len(trials) > MOST_ROWS:
        yield f"{count(len(trials) - MOST_ROWS, 'more trial')}: see `{RUNS}`.\n"


def _cells(trial: str, rows: list[IndexRow]) -> list[str]:
    run = run_data(trial, rows)
    low, high = run["interval_low"], run["interval_high"]
    folder = rows[0].directory.rpartition("/")[0]
    return [
        run["env"],
        run["experiment"],
        run["state"],
        number(run["score"]),
        "" if low is None else f"{number(low)} .. {number(high)}",
        str(run["n"]),
        amount(run["frames"]),
        "" if run["target"] is None else f"{run['target']:g}",
        f"[curve]({folder}/{PLOT})",
    ]


def _curves(changes: Changes) -> Iterator[tuple[str, bytes]]:
    """The files of curves with trials that changed, and a plot of each of these trials."""
    rows: dict[str, list[IndexRow]] = {}
    for row in changes.index.rows.values():
        rows.setdefault(shard_of(row.trial), []).append(row)
    changed = {row.trial: row for row in changes.index.rows.values() if row.directory in changes.staged}
    for shard in dict.fromkeys(map(shard_of, changed)):
        here = {**changes.local, **changes.staged}
        absent = [row for row in rows[shard] if row.directory not in here]
        data = curves_table(rows[shard], here, changes.read(shard) if absent else None)
        yield shard, data
        for trial, row in changed.items():
            if shard_of(trial) == shard and (plot := _plot(row, data)):
                yield f"{row.directory.rpartition('/')[0]}/{PLOT}", plot


def _plot(row: IndexRow, data: bytes) -> bytes | None:
    curves = [curve for curve in curves_of(data, row.trial) if curve.frame.size]
    joined = join(curves, min_seeds=1)
    if not joined.frame.size:
        return None
    band = "lowest to highest seed" if len(curves) > 1 else ""
    return figure_bytes([Panel(row.env, [Line.joined(row.experiment, joined)], row.target, band=band)], "png")
