"""Experiments that come after others: in which order their sessions start, and what they still wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.spec.errors import SpecError


class Stage(NamedTuple):
    """Sessions that wait for the same experiments."""

    sessions: list[PlannedSession]
    after: tuple[str, ...] = ()
    needs: Sequence[PlannedSession] = ()
    """The sessions of those experiments that are not done yet."""


class Awaited(NamedTuple):
    """The sessions of the experiments that an experiment comes after."""

    after: tuple[str, ...]
    done: int
    needs: list[PlannedSession]
    """Those that are not done."""

    @property
    def words(self) -> str:
        """`after cart/ppo: 2 of 3 sessions done`."""
        total = self.done + len(self.needs)
        failed = sum(planned.state == "failed" for planned in self.needs)
        done = f"{self.done:,} of {total:,} session{'' if total == 1 else 's'} done"
        return f"after {', '.join(self.after)}: {done}{f', {failed:,} failed' if failed else ''}"


def awaited(plan: Plan, existing: Existing) -> dict[str, Awaited]:
    """For each experiment that comes after others: their sessions."""
    names = {name for part in plan.parts for name in part.after}
    overrides = {part.name: part.overrides for part in plan.parts}
    sessions: dict[str, dict[str, PlannedSession]] = {name: {} for name in names}
    for row in chain(plan.rows(), plan.needed()) if names else ():
        if row.experiment in names and row.overrides == overrides.get(row.experiment, row.overrides):
            sessions[row.experiment] |= {planned.id: planned for planned in existing.planned(row)}
    found = {}
    for part in (part for part in plan.parts if part.after):
        if unknown := [name for name in part.after if not sessions[name]]:
            raise SpecError(f"{part.name} comes after {unknown[0]}, which this plan does not have: plan both together")
        before = {id: planned for name in part.after for id, planned in sessions[name].items()}
        needs = [planned for planned in before.values() if planned.state != "done"]
        found[part.name] = Awaited(part.after, len(before) - len(needs), needs)
    return found


def stages(plan: Plan, sessions: Sequence[PlannedSession], existing: Existing) -> list[Stage]:
    """Sessions of a plan in the order in which they can start; those that wait for nothing come first."""
    after = {part.name: tuple(sorted(part.after)) for part in plan.parts}
    if not any(after.values()):
        return [Stage(list(sessions))] if sessions else []
    waits = awaited(plan, existing)
    groups: dict[tuple[str, ...], list[PlannedSession]] = defaultdict(list)
    for planned in sorted(sessions, key=lambda planned: _depth(planned.row.experiment, after)):
        groups[after[planned.row.experiment]].append(planned)
    found = []
    for names, group in groups.items():
        own = {planned.id for planned in group}
        needs = waits[group[0].row.experiment].needs if names else ()
        found.append(Stage(group, names, [planned for planned in needs if planned.id not in own]))
    return found


def in_order(plan: Plan, sessions: Sequence[PlannedSession], existing: Existing) -> list[Stage]:
    """The stages of sessions that one process trains in turn; raises `SpecError` if others must be trained first."""
    ordered = stages(plan, sessions, existing)
    for stage in ordered:
        if reason := obstacle(stage.needs, (planned.id for planned in sessions)):
            raise SpecError(f"{stage.sessions[0].row.experiment} is {reason}")
    return ordered


def _depth(name: str, after: dict[str, tuple[str, ...]]) -> int:
    """How many experiments come before one, on the longest way. There are no circles."""
    return 1 + max((_depth(before, after) for before in after.get(name, ())), default=0)


def obstacle(needs: Iterable[PlannedSession], going: Iterable[str]) -> str | None:
    """Why sessions that wait for these will not start; None if all of them are running or among those `going` on."""
    ids = set(going)
    for planned in needs:
        if planned.id not in ids and planned.state not in ("done", "running"):
            how = {"failed": "failed", "new": "has not been started"}.get(planned.state, "is not finished")
            return f"not started: it comes after {planned.row.experiment}, whose session {planned.id} {how}"
    return None
