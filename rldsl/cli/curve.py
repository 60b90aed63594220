"""Learning curves in the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rldsl.cli.tables import console, note
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.report.curve_panels import View, make_panels
from rldsl.report.panel import Panel
from rldsl.report.terminal_plot import AXIS_WIDTH, HEIGHT, WIDTH, terminal_plot
from rldsl.report.trial_curves import of_plan
from rldsl.spec.errors import SpecError

MOST_PLOTS = 6
SMALL = 9
"""Rows of a plot at the end of training."""
WIDEST = 110


def show_curves(plan: Plan, existing: Existing) -> int:
    """Shows a plot for each environment: the finished sessions of each experiment's best trial. Returns how many."""
    try:
        panels = make_panels(of_plan(plan, existing, note, states=("done",)), View(top=1))
    except SpecError:  # no episode has ended
        return 0
    show_panels(panels[:MOST_PLOTS], SMALL)
    return len(panels)


def show_panels(panels: Iterable[Panel], height: int = HEIGHT) -> None:
    """Prints panels, as wide as the terminal."""
    width = min(console().width, WIDEST) - AXIS_WIDTH - 1 if console().is_terminal else WIDTH
    for panel in panels:
        console().print()
        for line in terminal_plot(panel, max(20, width), height):
            console().print(line, soft_wrap=True)
