"""Learning curves in the terminal, drawn with braille characters: 2 x 4 dots each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rldsl.cli.tables import console, echo, escape
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.outcome import Outcome, outcomes
from rldsl.report.words import amount, count, value

WIDTH, HEIGHT = 60, 10
"""Characters of a plot, without its axes."""
MOST_CURVES = 6
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille character, by column and row."""


def show_curves(plan: Plan, existing: Existing) -> int:
    """Shows a plot for each experiment with finished sessions, of its best trial; returns the number of plots."""
    best: dict[str, Outcome] = {}
    for outcome in outcomes(plan, existing):
        name = outcome.row.experiment
        if name not in best or outcome.scores.mean() > best[name].scores.mean():
            best[name] = outcome
    shown = list(best.values())[:MOST_CURVES]
    for outcome in shown:
        _show(outcome)
    return len(shown)


def _show(outcome: Outcome) -> None:
    curve = outcome.data()["curve"]
    frames, returns = curve["frame"], curve["mean"]
    differs = ", ".join(f"{path} = {value(setting)}" for path, setting in outcome.row.differs.items())
    title = f"[bold]{outcome.row.experiment}[/bold]{f'  {escape(differs)}' if differs else ''}"
    echo(f"\n{title}  episode_return, mean of {count(len(outcome.runs), 'seed')}")
    for line in plot(frames, returns):
        console().print(line, markup=False, soft_wrap=True)


def plot(x: Sequence[float], y: Sequence[float], width: int = WIDTH, height: int = HEIGHT) -> list[str]:
    """The lines of a plot of `y` against `x`: a labelled y axis, the curve, and the range of `x` below."""
    low, high = min(y), max(y)
    if low == high:
        low, high = low - 1, high + 1
    cells = [[0] * width for _ in range(height)]
    points = [
        (_scaled(a, x[0], x[-1], 2 * width - 1), _scaled(b, low, high, 4 * height - 1))
        for a, b in zip(x, y, strict=True)
    ]
    for column, row in _connected(points):
        down = 4 * height - 1 - row
        cells[down // 4][column // 2] |= DOTS[column % 2][down % 4]
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    margin = max(map(len, labels.values()))
    rows = ["".join(chr(0x2800 + bits) for bits in line) for line in cells]
    lines = [f"{labels.get(index, ''):>{margin}} │{row}" for index, row in enumerate(rows)]
    first, last = amount(x[0]), f"{amount(x[-1])} frames"
    gap = max(1, width - len(first) - len(last))
    return [*lines, f"{'':>{margin}} └{'─' * width}", f"{'':>{margin}}  {first}{' ' * gap}{last}"]


def _scaled(number: float, low: float, high: float, most: int) -> int:
    return round((number - low) / (high - low) * most) if high > low else 0


def _connected(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The points, with straight lines of dots between them."""
    dots = list(points[:1])
    for (x0, y0), (x1, y1) in pairwise(points):
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        dots += [
            (round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps)) for step in range(1, steps + 1)
        ]
    return dots
