"""The files of a report: BENCHMARKS.md, benchmarks.csv, benchmarks.json, plots as PNG and SVG, report.html."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rldsl.report.benchmark_page import BenchmarkPage, number
from rldsl.report.benchmark_table import Benchmark, BenchmarkRow, finite
from rldsl.report.panel import Line, Panel, colors_of
from rldsl.report.words import amount
from rldsl.store.errors import writing
from rldsl.store.files import replace_text

FORMATS = ("svg", "png")
NAMED = ("family", "environment", "experiment", "algorithm", "status", "rejections")
"""The columns of an experiment without a result; its settings may change before it has one."""
COLUMNS = (
    *("family", "environment", "experiment", "algorithm", "trial", "status", "score", "interval_low", "interval_high"),
    *("n", "seeds", "scores", "evaluation_score", "evaluation_scores", "frames", "frames_per_second", "target"),
    *("random", "progress", "strength", "max_strength", "final_strength", "sample_efficiency", "stability"),
    *("consistency", "reference", "reference_source", "sha", "rejections"),
)


@dataclass(frozen=True)
class ReportFiles:
    """A report and where its files are: the page may be in another folder than the rest."""

    benchmark: Benchmark
    folder: Path
    page: Path

    def texts(self) -> dict[Path, str]:
        """The content of the text files, which is the same for the same results."""
        figures = {key: _with_suffix(path, "svg") for key, (path, _) in self.figures().items()}
        return {
            self.page: BenchmarkPage(self.benchmark, self.page.parent, figures).text(),
            self.folder / "benchmarks.csv": _csv(self.benchmark),
            self.folder / "benchmarks.json": json.dumps(_json(self.benchmark), indent=1) + "\n",
        }

    def figures(self) -> dict[tuple[str, str], tuple[Path, Panel]]:
        """A panel for each environment with results, by family and environment, and its path without a suffix."""
        return {
            (family, env): (self.folder / "plots" / f"{family}-{slug}", panel)
            for family, env, slug, panel in _panels(self.benchmark)
        }

    def write(self) -> list[Path]:
        """Writes all files; returns their paths."""
        from rldsl.report.figures import save_figure
        from rldsl.report.html import save_page

        written = []
        for path, text in self.texts().items():
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(path, text)
            written.append(path)
        for path, panel in self.figures().values():
            for suffix in FORMATS:
                save_figure([panel], _with_suffix(path, suffix))
                written.append(_with_suffix(path, suffix))
        save_page(self.folder / "report.html", "Benchmarks", list(self._sections()))
        return [*written, self.folder / "report.html"]

    def differences(self) -> list[str]:
        """A sentence for each file that does not match the results. Figures are compared by their data."""
        from rldsl.report.figures import digest_in
        from rldsl.report.panel import data_digest

        wrong = [path for path, text in self.texts().items() if _read(path) != text]
        expected = {
            _with_suffix(path, suffix): data_digest([panel])
            for path, panel in self.figures().values()
            for suffix in FORMATS
        }
        wrong += [path for path, digest in expected.items() if digest_in(path) != digest]
        extra = [path for path in sorted((self.folder / "plots").glob("*")) if path not in expected]
        sentences = [f"{path} does not match the results" for path in wrong]
        return [*sentences, *(f"{path} shows no result" for path in extra)]

    def _sections(self) -> Iterator[Any]:
        from rldsl.report.html import Section, html_table

        names = ("experiment", "status", "score", "95% interval", "n", "frames", "target", "scores of the seeds")
        figures = self.figures()
        for family in self.benchmark.families:
            rows = [_html_cells(row) for row in self.benchmark.of(family) if row.result is not None]
            panels = [panel for (of, _), (_, panel) in figures.items() if of == family]
            if rows:
                right = ("score", "n", "frames", "target")
                yield Section(family, panels, html_table(names, rows, right))


def _html_cells(row: BenchmarkRow) -> list[str]:
    assert row.result is not None
    return [
        row.entry.experiment,
        row.status,
        number(row.score),
        f"{number(row.interval.low)} .. {number(row.interval.high)}" if row.interval else "",
        str(len(row.result.sessions)),
        amount(row.entry.frames),
        "" if row.entry.target is None else f"{row.entry.target:g}",
        ", ".join(map(number, row.result.scores)),
    ]


def _panels(benchmark: Benchmark) -> Iterator[tuple[str, str, str, Panel]]:
    """Family, environment, its name as a file name, and the curves of all its experiments."""
    measured: dict[tuple[str, str], list[BenchmarkRow]] = {}
    for row in benchmark.rows:
        if row.result is not None and row.result.curve is not None:
            measured.setdefault((row.entry.family, row.entry.env), []).append(row)
    for (family, env), rows in sorted(measured.items()):
        if all(row.entry.trial.agent.kind == "random" for row in rows):
            continue  # a baseline alone shows nothing
        labels = [row.entry.experiment for row in rows]
        colors = colors_of(labels)
        lines = [_line(row, colors[row.entry.experiment]) for row in rows]
        targets = {row.entry.target for row in rows if row.entry.target is not None}
        band = "lowest to highest seed" if any(line.low is not None for line in lines) else ""
        yield family, env, rows[0].entry.trial.env.slug, Panel(env, lines, max(targets, default=None), band=band)


def _line(row: BenchmarkRow, color: int) -> Line:
    curve = row.result.curve if row.result else None
    assert curve is not None
    seeds = int(curve.n.max())
    low, high = (curve.low, curve.high) if seeds > 1 else (None, None)
    return Line(row.entry.experiment, curve.frame, curve.mean, low, high, color, seeds)


def _data(row: BenchmarkRow) -> dict[str, Any]:
    """A row as JSON, with the columns of the CSV file."""
    result, entry = row.result, row.entry
    reference = row.reference if result else None
    sessions = result.sessions if result else ()
    shas = {str(facts.get("sha")) for one in sessions for facts in one.provenance or ()}
    values = {
        "family": entry.family,
        "environment": entry.env,
        "experiment": entry.experiment,
        "algorithm": row.algorithm,
        "trial": entry.trial.id,
        "status": row.status,
        "score": finite(row.score),
        "interval_low": row.interval.low if row.interval else None,
        "interval_high": row.interval.high if row.interval else None,
        "n": len(sessions),
        "seeds": [one.seed for one in sessions],
        "scores": [one.score for one in sessions],
        "evaluation_score": finite(row.evaluation),
        "evaluation_scores": (result.evaluation_scores if result else None) or [],
        "frames": entry.frames,
        "frames_per_second": round(result.frames_per_second, 1) if result and result.frames_per_second else None,
        "target": entry.target,
        "random": row.random,
        "progress": row.progress,
        **row.metrics(),
        "reference": reference.score if reference else None,
        "reference_source": reference.source if reference else None,
        "sha": min(shas, default=None),
        "rejections": list(row.rejections),
    }
    return {name: _rounded(values[name]) for name in COLUMNS}


def _rounded(value: Any) -> Any:
    """Numbers with six digits: the last bits of a mean depend on the processor."""
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")


def _json(benchmark: Benchmark) -> dict[str, Any]:
    measured = [row for row in benchmark.rows if row.result is not None]
    return {
        "format": "rldsl.benchmarks",
        "rows": [{**_data(row), "reference": row.reference.data() if row.reference else None} for row in measured],
        "rejected": {row.entry.experiment: list(row.rejections) for row in benchmark.rejected},
        "missing": [row.entry.experiment for row in benchmark.rows if row.status == "missing" and not row.rejections],
    }


def _csv(benchmark: Benchmark) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in benchmark.rows:
        shown = COLUMNS if row.result is not None else NAMED
        writer.writerow([_cell(value) if name in shown else "" for name, value in _data(row).items()])
    return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return "" if value is None else str(value)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
