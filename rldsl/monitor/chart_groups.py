"""Which sessions make a line of a chart: those of a trial, or each one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rldsl.monitor.chart_lines import Group, colour_of
from rldsl.monitor.snapshot import SessionSnapshot

if TYPE_CHECKING:
    from rldsl.monitor.app import WatchApp


def groups_of(app: WatchApp, sessions: Iterable[SessionSnapshot], each_seed: bool = False) -> list[Group]:
    """The lines of sessions: pinned ones first, then by label."""
    found: dict[tuple[str, str, int], list[SessionSnapshot]] = {}
    for session in sessions:
        seed = session.status.seed if each_seed else -1
        found.setdefault((session.status.experiment, session.trial, seed), []).append(session)
    groups = (_group(app, *item) for item in found.items())
    return sorted(groups, key=lambda one: (not one.pinned, one.label))


def _group(app: WatchApp, key: tuple[str, str, int], sessions: list[SessionSnapshot]) -> Group:
    experiment, trial, seed = key
    varied = app.index.varied.get(experiment)
    label = " ".join(filter(None, [experiment, varied.label(trial) if varied else trial]))
    label = label if seed < 0 else f"{label} seed {seed}"
    paths = tuple(session.path for session in sessions)
    return Group(label, paths, colour_of(label, app.colours), app.pinned.issuperset(paths))
