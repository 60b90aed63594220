"""Running a plan where its launcher says: here and in the foreground, or as jobs of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rldsl.cli import foreground, queued
from rldsl.plan.plan import Plan
from rldsl.spec.launcher import Local


def run_plan(
    plan: Plan,
    runs: Path,
    file: Path,
    states: Sequence[str] | None = None,
    *,
    detach: bool = False,
    cancel_stale: bool = False,
) -> int:
    """Runs the sessions that are in one of these states; 0 when nothing failed."""
    foreground.refuse_adaptive(plan)
    launcher = plan.launcher
    if isinstance(launcher, Local) and not detach:
        return foreground.run_plan(plan, runs, file, launcher, states or ("new", "resume"))
    order = queued.Order(plan, runs, file, launcher, states or ("new", "resume", "failed"))
    return queued.run_plan(order, detach, cancel_stale)
