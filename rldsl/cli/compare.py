"""The command `compare`: whether B is better or worse than A; as a regression test, by its exit code."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS
from rldsl.cli.tables import echo, escape, table
from rldsl.spec.errors import SpecError

if TYPE_CHECKING:
    from rldsl.maths.statistics import Interval
    from rldsl.report.compare import Compared, Comparison
    from rldsl.report.result import Result

STYLES = {"worse": "red", "better": "green", "unclear": "dim"}
MOST_PLOTS = 4


def compare(
    a: Annotated[str, typer.Argument(help="What to compare with: PATH, PATH:EXPERIMENT, or EXPERIMENT in --runs.")],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="What is compared; without it, with --at: A as it is now.")
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="REV", help="A at this git commit; given twice, also B. For results folders."),
    ] = None,
    only: given.Only = None,
    fail_below: Annotated[
        float | None,
        typer.Option("--fail-below", metavar="X", help="Fail if B - A < X (such as -10), instead of by the interval."),
    ] = None,
    runs: given.Runs = RUNS,
    json: given.Json = False,
) -> int:
    """Compare the scores of B with those of A; the exit code is 1 if B is worse.

    A and B are experiments, experiment files, run directories, results folders, or files in them.
    B is worse if the 95% interval of the difference of the scores is below 0.
    The exit code is also 1 if one of several experiments cannot be compared.
    """
    from rldsl.cli.compare_sources import load_source
    from rldsl.report.compare import compare as compare_results

    revisions = at or []
    if len(revisions) > 2:
        raise SpecError("--at is given at most twice: the commit of A, and that of B")
    if b is None and not revisions:
        raise SpecError("compare needs A and B, or A and --at REV: A at that commit and as it is now")
    at_a, at_b = [*revisions, None, None][:2]
    labels = [f"{source}{f' at {revision}' if revision else ''}" for source, revision in ((a, at_a), (b or a, at_b))]
    compared = compare_results(load_source(a, runs, at_a, only or ()), load_source(b or a, runs, at_b, only or ()))
    failed = compared.worse if fail_below is None else compared.below(fail_below)
    if json:
        _print_json(compared, labels, bool(failed))
    else:
        _show(compared, labels)
        if fail_below is not None and failed:
            echo(f"[red]B - A is below {fail_below:g}: {escape(', '.join(one.name for one in failed))}[/red]")
    return int(bool(failed or compared.refused))


def _show(compared: Compared, labels: list[str]) -> None:
    from rldsl.report.compare import summary

    echo(f"A: {escape(labels[0])}\nB: {escape(labels[1])}\n")
    names = ["experiment", "", "n", "score", "95% interval", "seeds"]
    rows = [row for one in compared.comparisons for row in _rows(one)]
    table(names, rows, right=("n", "score", "95% interval"))
    for note in filter(None, (note for one in compared.comparisons for note in (one.note, one.few_seeds))):
        echo(f"[yellow]{escape(note)}[/yellow]")
    for side, left_out in (("A", compared.only_a), ("B", compared.only_b)):
        if left_out:
            echo(f"[dim]only in {side}: {escape(', '.join(left_out))}[/dim]")
    for sentence in compared.refused:
        echo(f"[red]not compared: {escape(sentence)}[/red]")
    echo(summary(compared))
    number = len(compared.comparisons)
    if number > 1:
        echo(f"[dim]verdicts at a confidence of 1 - 0.05 / {number}: at most 5% for any of them to be wrong[/dim]")
    _show_curves(compared, labels)


def _rows(one: Comparison) -> list[list[str]]:
    style = STYLES[one.verdict]
    chance = f"P(B > A) {one.improvement:.2f} ({_ends(one.improvement_interval, 2)})"
    verdict = f"[{style}]{one.verdict}[/{style}]"
    return [
        [escape(one.a.experiment), "A", *_side(one.a)],
        ["" if one.a.experiment == one.b.experiment else escape(one.b.experiment), "B", *_side(one.b)],
        [verdict, "B - A", "", f"{one.difference:+.1f}", _ends(one.interval), chance],
    ]


def _side(result: Result) -> list[str]:
    from rldsl.maths.statistics import interval_of_mean

    seeds = " ".join(f"{score:.1f}" for score in sorted(result.scores))
    return [str(len(result.scores)), f"{result.score:.1f}", _ends(interval_of_mean(result.scores)), seeds]


def _ends(interval: Interval, digits: int = 1) -> str:
    return f"{interval.low:.{digits}f} .. {interval.high:.{digits}f}" if interval.known else "-"


def _show_curves(compared: Compared, labels: list[str]) -> None:
    """The curves of a single comparison; of several, those whose verdict is clear."""
    from rldsl.cli.curve import show_panels

    clear = [one for one in compared.comparisons if one.verdict != "unclear"]
    shown = compared.comparisons if len(compared.comparisons) == 1 else clear[:MOST_PLOTS]
    panels = [one.panel(f"A {labels[0]}", f"B {labels[1]}") for one in shown]
    show_panels(panel for panel in panels if panel.lines)


def _print_json(compared: Compared, labels: list[str], failed: bool) -> None:
    data = {
        "a": labels[0],
        "b": labels[1],
        "failed": failed,
        "comparisons": [one.data() for one in compared.comparisons],
        "only_a": compared.only_a,
        "only_b": compared.only_b,
        "not_compared": compared.refused,
    }
    print(json_module.dumps(data, indent=2))  # noqa: T201
