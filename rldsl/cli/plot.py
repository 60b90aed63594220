"""The command `plot`: learning curves of anything that has them, as a file or in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldsl.cli import options as given
from rldsl.cli.options import RUNS, Choice
from rldsl.cli.tables import echo, escape
from rldsl.report.words import count
from rldsl.spec.errors import SpecError, suggestion

if TYPE_CHECKING:
    from rldsl.report.panel import Panel
    from rldsl.report.trial_curves import TrialCurves

MOST_TRIALS = 10
FORMATS = (".png", ".svg", ".html")


def plot(
    choice: Choice,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[SOURCE]...", help="More of the same, drawn into the same plots.")
    ] = None,
    runs: given.Runs = RUNS,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A .png, .svg or .html; without it, in the terminal.")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAME", help="A column of metrics.csv.")
    ] = "episode_return",
    x: Annotated[str, typer.Option("--x", metavar="AXIS", help="frames, wall-time or updates.")] = "frames",
    stat: Annotated[
        str, typer.Option("--stat", metavar="WHICH", help="mean or median over seeds, or seeds: each of them.")
    ] = "mean",
    smooth: Annotated[
        int, typer.Option("--smooth", metavar="N", min=1, help="Each point is the mean of the last N log points.")
    ] = 1,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, help="The best N trials of each experiment.")
    ] = MOST_TRIALS,
) -> None:
    """Plot learning curves, one plot for each environment.

    FILE and SOURCE are experiment files, saved plans, run directories,
    ids of trials or sessions in --runs, results folders or files in them.
    """
    from rldsl.cli.curve_sources import sources
    from rldsl.report.curve_panels import AXES, View, make_panels

    _check("--x", x, AXES)
    statistic = _check("--stat", stat, ("mean", "median", "seeds"))
    if out is not None and out.suffix not in FORMATS:
        raise SpecError(f"--out {out}: a plot is written as .png, .svg or .html")
    trials = sources(choice, more or (), runs)
    view = View(metric, AXES[x], statistic, smooth, top)  # type: ignore[arg-type]  # one of the three
    panels = make_panels(trials, view)
    _tell_left_out(trials, top)
    if out is None:
        from rldsl.cli.curve import show_panels

        show_panels(panels)
        return
    _write(panels, out)
    echo(f"wrote {out}: {count(len(panels), 'plot')}, {count(sum(len(panel.lines) for panel in panels), 'line')}")


def _check(option: str, value: str, valid: Collection[str]) -> str:
    if value not in valid:
        raise SpecError(f"{option} {value}: {suggestion(value, valid)}")
    return value


def _tell_left_out(trials: Sequence[TrialCurves], top: int) -> None:
    for name, number in Counter(trial.experiment for trial in trials).items():
        if number > top:
            echo(f"{escape(name)}: the best {top} of {number} trials by their last value; --top shows more")


def _write(panels: Sequence[Panel], out: Path) -> None:
    if out.suffix == ".html":
        from rldsl.report.html import Section, save_page

        save_page(out, out.stem, [Section("", panels)])
    else:
        from rldsl.report.figures import save_figure

        save_figure(panels, out)
