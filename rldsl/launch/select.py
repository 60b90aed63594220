"""Selecting the sessions of a plan that a command runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan, Row
from rldsl.spec.errors import SpecError
from rldsl.store.session_state import State

TRAIN: tuple[State, ...] = ("new", "resume", "paused")
"""States of the sessions that `train` runs. Failed ones are left alone: they would most likely fail again."""
RESUME: tuple[State, ...] = ("resume", "paused", "failed")
"""States of the sessions that `resume` runs."""

MOST_AT_ONCE = 1_000_000
"""Sessions that one command runs."""


class Selection(NamedTuple):
    """The sessions to run, and how many were skipped because they run already or failed before."""

    sessions: list[PlannedSession]
    running: int
    failed: int
    outdated: int = 0
    """Finished sessions that other code has trained."""


def select_sessions(
    plan: Plan, existing: Existing, states: Collection[State], *, here: bool = True, also: Collection[str] = ()
) -> Selection:
    """The sessions of a plan in one of these states, each once; `also` are ids of sessions of any state but done.

    Raises `SpecError` if one cannot run: because it is not implemented or, if it is to run `here`, because this
    machine lacks something.
    """
    _refuse_adaptive(plan)
    if plan.sessions > MOST_AT_ONCE:
        raise SpecError(f"{plan.sessions:,} sessions are too many to run at once: choose some with --only or --seeds")
    selected: list[PlannedSession] = []
    skipped: Counter[str] = Counter()
    for planned in existing.sessions(plan):
        refuse_unimplemented(planned.row)
        if planned.state not in states and (planned.id not in also or planned.state == "done"):
            skipped[planned.state] += 1
            skipped["outdated"] += planned.state == "done" and planned.on_disk.other_code
        elif here and planned.lacks:
            raise SpecError(planned.lacks)
        else:
            selected.append(planned)
    return Selection(selected, skipped["running"], skipped["failed"], skipped["outdated"])


def _refuse_adaptive(plan: Plan) -> None:
    for part in plan.parts:
        if part.search in ("asha", "nevergrad"):
            raise SpecError(f"{part.name}: {part.search} can be planned but not run yet; .random(...) can")


def refuse_unimplemented(row: Row) -> None:
    """Raises `SpecError` for an agent or environment without an implementation."""
    for part in (row.trial.env, row.trial.agent):
        if not part.implementation:
            raise SpecError(f"{row.experiment}: {type(part).__name__} can be planned but not run yet")
