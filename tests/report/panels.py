"""Panels with known lines, for the tests of figures and pages."""

from __future__ import annotations

import numpy as np

from rldsl.report.panel import FRAMES, Axis, Line, Panel

X = np.linspace(0, 1e5, 50)


def line(label: str, color: int, slope: float = 1.0) -> Line:
    """A straight line to 100 * slope, with a band of 10 around it."""
    y = X / 1e3 * slope
    return Line(label, X, y, y - 10, y + 10, color, seeds=4)


def cartpole(axis: Axis = FRAMES) -> Panel:
    lines = [line("ppo", 0), line("a2c", 3, 0.5), Line("random", X, np.full(50, 22.0), color=9)]
    return Panel("CartPole-v1", lines, 80.0, axis=axis, band="lowest to highest seed", note="mean of 4 seeds")


def pendulum() -> Panel:
    return Panel("Pendulum-v1", [line("sac", 1, -2), Line("one <b>", np.array([5e4]), np.array([-100.0]), color=2)])
