"""`search --validate K`: trains the best configurations on the experiment's own seeds and shows what they gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rldsl.cli import INTERRUPTED
from rldsl.cli.progress import make_display
from rldsl.cli.run import command, invocation
from rldsl.cli.tables import echo, escape, table
from rldsl.launch.run import RunRequest, run_plan
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.report.words import count, settings_text
from rldsl.search.leaderboard import RankedTrial
from rldsl.search.validate import Candidate, ValidatedTrial, candidates, validation_plan, validation_results, winner


class NotValidated(Exception):
    """The validation ended before every candidate had a score; `code` is the exit code of the command."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


def validate(one: Overridden, best: Sequence[RankedTrial], runs: Path, file: Path) -> list[ValidatedTrial]:
    """Trains the current settings and the best trials of a search, and shows the comparison."""
    compared = candidates(one.experiment, best, one)
    _train(one, compared, runs, file)
    assert one.experiment.search is not None
    maximize = one.experiment.search.maximize
    results = validation_results(compared, Existing(runs), maximize)
    _show(results, maximize)
    if not all(result.complete for result in results):
        raise NotValidated(1)
    return results


def _train(one: Overridden, compared: Sequence[Candidate], runs: Path, file: Path) -> None:
    plan, seeds = validation_plan(one, compared), count(len(one.experiment.seeds), "seed")
    trained = f"{count(len(compared) - 1, 'trial')} and the current settings on {seeds} of the experiment"
    echo(f"[bold]{escape(plan.parts[0].name)}[/bold]  {trained}")
    with make_display() as display:
        result = run_plan(RunRequest(plan, runs, file, invocation()), display)
    if result.outcome == "stopped":
        echo(f"stopped, all progress is saved; to continue: [bold]{command()}[/bold]")
        raise NotValidated(INTERRUPTED)
    if result.outcome == "unfollowed":
        echo(f"the jobs keep running: [bold]{command()}[/bold] follows them again")
        raise NotValidated(INTERRUPTED)


def _show(results: Sequence[ValidatedTrial], maximize: bool) -> None:
    names = ["", "n", "score", "difference", "95% interval", "P(better)", "settings"]
    table(names, [_cells(result) for result in results], right=names[1:6])
    n = min(len(result.scores) for result in results)
    if n < 3:
        echo(f"[yellow]{count(n, 'seed')}: too few for an interval; set .seeds(4) or more in the experiment[/yellow]")
    echo(verdict(results, maximize))


def verdict(results: Sequence[ValidatedTrial], maximize: bool) -> str:
    """One sentence: which configuration is the best, and whether the difference is clear."""
    best = winner(results, maximize)
    if best is None or not all(result.complete for result in results):
        return "not every session has a score: the comparison is not complete"
    if best.candidate.number is None:
        return "no configuration of the search scores better than the current settings"
    gain = f"{best.candidate.name} scores {best.score:.1f}, {best.difference:+.1f} against the current settings"
    if math.isnan(best.interval.low):
        return gain
    interval = f"95% interval {best.interval.low:.1f} to {best.interval.high:.1f}"
    clear = best.interval.low > 0 if maximize else best.interval.high < 0
    return f"{gain} ({interval}{'' if clear else ', which includes no difference'})"


def _cells(result: ValidatedTrial) -> list[str]:
    low, high = result.interval
    return [
        result.candidate.name,
        str(len(result.scores)),
        _number(result.score, ".1f"),
        _number(result.difference, "+.1f") if result.candidate.number is not None else "",
        "" if math.isnan(low) else f"{low:.1f} .. {high:.1f}",
        _number(result.probability, ".2f") if result.candidate.number is not None else "",
        escape(_settings(result.candidate)),
    ]


def _settings(one: Candidate) -> str:
    return settings_text(one.row.differs)


def _number(number: float, form: str) -> str:
    return "-" if math.isnan(number) else format(number, form)
