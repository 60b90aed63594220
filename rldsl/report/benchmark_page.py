"""BENCHMARKS.md: a table for each family, learning curves, what is missing, what was rejected, and references."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rldsl.report.audit import unverified
from rldsl.report.benchmark_table import STATUSES, Benchmark, BenchmarkRow
from rldsl.report.references import Reference
from rldsl.report.words import amount, count

INTRODUCTION = """\
The score is the mean over seeds of the final `episode_return_ma`: the mean of the last 100 log points, each the mean
return of the last 100 training episodes. The interval is a 95% confidence interval of that mean (Student's t, which
assumes that scores are about normal: look at the score of each seed). Status: **solved** at the target or above;
**close** if at least 80% of the way from a random policy to the target; otherwise **below**; **missing** without an
accepted result. Frames/s is the speed of one session while the sessions of its pack trained beside it, on whatever
machine that was.
"""
NAMES = (
    *("environment", "algorithm", "experiment", "status", "score", "95% interval", "score of each seed", "n"),
    *("evaluation", "frames", "frames/s", "target", "random", "reference", "data"),
)
RIGHT = ("score", "n", "evaluation", "frames", "frames/s", "target", "random", "reference")


class BenchmarkPage:
    """Writes the page. `folder` is where it will be, which links are relative to."""

    def __init__(self, benchmark: Benchmark, folder: Path, plots: dict[tuple[str, str], Path]) -> None:
        self.benchmark = benchmark
        self.folder = folder
        self.plots = plots
        """The figures, by family and environment."""
        rows = [row for family in benchmark.families for row in benchmark.of(family) if row.result is not None]
        self.references = list(dict.fromkeys(row.reference for row in rows if row.reference is not None))

    def text(self) -> str:
        """The whole page."""
        parts = ["# Benchmarks\n", INTRODUCTION, *self._summary()]
        for family in self.benchmark.families:
            parts += [f"## {family}\n", *self._family(family)]
        parts += [*self._rejected(), *self._reference_list()]
        return "\n".join(parts)

    def _summary(self) -> Iterator[str]:
        rows = []
        for family in self.benchmark.families:
            statuses = [row.status for row in self.benchmark.of(family)]
            rows.append([family, *(str(statuses.count(status)) for status in STATUSES)])
        yield markdown_table(("family", *STATUSES), rows, STATUSES)

    def _family(self, family: str) -> Iterator[str]:
        rows = self.benchmark.of(family)
        measured = [row for row in rows if row.result is not None]
        if measured:
            yield markdown_table(NAMES, [self._cells(row) for row in measured], RIGHT, empty_columns=False)
        if noted := [row for row in measured if row.result is not None and unverified(row.result)]:
            missing = ", ".join(dict.fromkeys(one for row in noted for one in unverified(row.result)))  # type: ignore[arg-type]
            yield f"\\* converted from an earlier format, which did not record {missing}.\n"
        for (of, env), path in self.plots.items():
            if of == family:
                yield f"![Learning curves in {env}]({self._link(path)})\n"
        yield from _missing(rows)

    def _cells(self, row: BenchmarkRow) -> list[str]:
        result, entry = row.result, row.entry
        assert result is not None
        speed = result.frames_per_second
        mark = r"\*" if unverified(result) else ""
        return [
            entry.env,
            row.algorithm,
            f"{entry.experiment}{mark}",
            row.status,
            number(row.score),
            f"{number(row.interval.low)} .. {number(row.interval.high)}" if row.interval else "",
            ", ".join(map(number, result.scores)),
            str(len(result.sessions)),
            number(row.evaluation),
            amount(entry.frames),
            "" if speed is None else f"{speed:,.0f}",
            "" if entry.target is None else f"{entry.target:g}",
            number(row.random),
            self._reference(row.reference),
            f"[data]({self._link(result.path)})" if result.path else "",
        ]

    def _reference(self, reference: Reference | None) -> str:
        if reference is None:
            return ""
        return f"{number(reference.score)} [[{self.references.index(reference) + 1}]](#references)"

    def _link(self, path: Path) -> str:
        return Path(os.path.relpath(path, self.folder)).as_posix()

    def _rejected(self) -> Iterator[str]:
        rejected = [(row.entry.experiment, reason) for row in self.benchmark.rejected for reason in row.rejections]
        rejected += [(one.experiment, "no experiment has this name") for one in self.benchmark.unknown]
        if rejected:
            yield "## Rejected\n\nThe audit rejected these results; they are not in the tables above.\n"
            yield markdown_table(("experiment", "reason"), rejected)

    def _reference_list(self) -> Iterator[str]:
        if self.references:
            yield "## References\n\nThe published score of the algorithm with the closest protocol.\n"
            yield "\n".join(f"{index}. {cited(one)}" for index, one in enumerate(self.references, 1)) + "\n"


def cited(one: Reference) -> str:
    """A reference in a line: algorithm, environment, frames, seeds, protocol and source."""
    seeds = "" if one.n is None else f", {count(one.n, 'seed')}"
    return f"{one.algorithm} in {one.env}, {amount(one.frames)} frames{seeds}, {one.protocol}: {one.source}"


def number(value: float | None) -> str:
    """A score for a table: one decimal, more for scores below 1; empty without one."""
    if value is None:
        return ""
    return f"{value:,.3g}" if 0 < abs(value) < 1 else f"{value:,.1f}"


def markdown_table(
    names: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), empty_columns: bool = True
) -> str:
    """A Markdown table; columns without any text are left out unless `empty_columns`."""
    rows = list(rows)
    kept = [index for index in range(len(names)) if empty_columns or any(row[index] for row in rows)]
    marks = ("---:" if names[index] in right else "---" for index in kept)
    lines = [[names[index] for index in kept], list(marks), *([row[index] for index in kept] for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _missing(rows: Sequence[BenchmarkRow]) -> Iterator[str]:
    """The experiments without a result: environments, then names with what they share in front."""
    missing = [row.entry for row in rows if row.status == "missing"]
    if not missing:
        return
    by_group: dict[tuple[str, str], list[str]] = {}
    for entry in missing:
        group, _, name = entry.experiment.rpartition("/")
        by_group.setdefault((entry.env, group), []).append(name)
    lines = [f"- {env}: {group}/{_either(names)}" for (env, group), names in by_group.items()]
    summary = f"{count(len(missing), 'experiment')} without a result"
    yield f"<details><summary>Missing: {summary}</summary>\n\n" + "\n".join(lines) + "\n\n</details>\n"


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"
