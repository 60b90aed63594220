"""Learning curves in the terminal, drawn with braille characters: 2 x 4 dots each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from rldsl.cli.tables import console, echo, escape
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.report.words import amount, count, value
from rldsl.store.metrics import read_metrics
from rldsl.store.session_dir import SessionDir

WIDTH, HEIGHT = 60, 10
"""Characters of a plot, without its axes."""
MOST_PLOTS = 6
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille character, by column and row."""

Curve = tuple[np.ndarray, np.ndarray]
"""Frames, and the episode_return at each of them."""


def show_curves(plan: Plan, existing: Existing) -> int:
    """Shows a plot for each experiment with finished sessions, of its best trial; returns the number of plots."""
    trials: dict[str, list[PlannedSession]] = defaultdict(list)
    for planned in existing.sessions(plan):
        if planned.state == "done":
            trials[planned.row.id].append(planned)
    best: dict[str, tuple[list[PlannedSession], Curve]] = {}
    for sessions in trials.values():
        curve = _mean_curve(sessions, existing.runs)
        name = sessions[0].row.experiment
        if curve is not None and (name not in best or curve[1][-1] > best[name][1][1][-1]):
            best[name] = sessions, curve
    for sessions, curve in list(best.values())[:MOST_PLOTS]:
        _show(sessions, *curve)
    return len(best)


def _mean_curve(sessions: Sequence[PlannedSession], runs: Path) -> Curve | None:
    """The mean over seeds, at frames that all of them have reached; None if no episode has ended."""
    curves = [_curve(SessionDir(runs / planned.directory)) for planned in sessions]
    curves = [(frames, returns) for frames, returns in curves if len(frames)]
    if not curves:
        return None
    first, last = max(frames[0] for frames, _ in curves), min(frames[-1] for frames, _ in curves)
    grid = np.linspace(first, last, 2 * WIDTH)
    return grid, np.mean([np.interp(grid, frames, returns) for frames, returns in curves], axis=0)


def _curve(directory: SessionDir) -> Curve:
    metrics = read_metrics(directory.metrics)
    rows = zip(metrics.get("frame", ()), metrics.get("episode_return", ()), strict=True)
    known = [(frame, episode_return) for frame, episode_return in rows if episode_return is not None]
    points = np.array(known, dtype=float).reshape(-1, 2)
    points = points[np.isfinite(points[:, 1])]
    return points[:, 0], points[:, 1]


def _show(sessions: Sequence[PlannedSession], frames: np.ndarray, returns: np.ndarray) -> None:
    row = sessions[0].row
    differs = ", ".join(f"{path} = {value(setting)}" for path, setting in row.differs.items())
    title = f"[bold]{row.experiment}[/bold]{f'  {escape(differs)}' if differs else ''}"
    echo(f"\n{title}  episode_return, mean of {count(len(sessions), 'seed')}")
    for line in plot(frames.tolist(), returns.tolist()):
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
