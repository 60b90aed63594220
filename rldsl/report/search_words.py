"""The report of a search in sentences, for the terminal and the HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from rldsl.report.search_report import SearchReport
from rldsl.report.words import amount, count, duration, value
from rldsl.search.leaderboard import RankedTrial

FRONT_SHOWN = 5


def sentences(report: SearchReport) -> Iterator[str]:
    """The best settings, frames saved, importance and the Pareto front."""
    yield _best(report)
    if len(report.rungs) > 1 and report.frames:
        yield _saved(report)
    yield _importance(report)
    if report.front:
        front = "; ".join(_in_front(row) for row in report.front[-FRONT_SHOWN:])
        yield f"Value and training time, no trial is better and faster: {front}."


def settings(row: RankedTrial) -> str:
    """`gamma = 0.99, lr = 0.001`: the settings that the search chose."""
    return ", ".join(f"{path.removeprefix('agent.')} = {value(one)}" for path, one in row.point.items())


def _best(report: SearchReport) -> str:
    if report.best is None:
        return "No trial has a value yet."
    best = report.best
    at = f" at rung {best.rung}" if len(report.rungs) > 1 else ""
    found = f"Best value {best.value:.1f}{at} ({count(best.seeds, 'seed')}), trial {best.number}: {settings(best)}."
    return f"{found} It was chosen for this value: expect less of it on fresh seeds."


def _saved(report: SearchReport) -> str:
    started = count(sum(row.state != "new" for row in report.rows), "trial")
    unstopped = amount(report.frames_unstopped)
    return (
        f"{started} took {amount(report.frames)} frames; without early stopping they would take {unstopped}: "
        f"{report.saved:.0%} saved."
    )


def _importance(report: SearchReport) -> str:
    importance = report.importance
    if importance is None:
        return f"Importance of the axes: not estimated, it takes {report.least_trials} trials with different values."
    shares = ", ".join(f"{name} {share:.2f}" for name, share in importance.axes.items())
    target = "ranks" if len(report.rungs) > 1 else "values"
    trusted = f"it explains {max(0.0, importance.explained):.0%} of the variance of held-out trials"
    forest = f"a random forest on the {target} of {count(importance.trials, 'trial')} ({trusted})"
    return f"Importance of the axes, a rough guide from {forest}: {shares}."


def _in_front(row: RankedTrial) -> str:
    return f"trial {row.number} {row.value:.1f} in {duration(row.seconds)}"
