"""The states of sessions, for `status`, `list` and the monitor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.store.metrics import last_row
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

STYLES = {
    "new": "cyan",
    "resume": "yellow",
    "paused": "yellow",
    "running": "blue",
    "done": "green",
    "failed": "red",
}
"""The states of a session on disk, and their colours."""


def plan_states(plan: Plan, existing: Existing) -> Iterator[SessionState]:
    """The sessions of a plan, including those that have not been started."""
    for planned in existing.sessions(plan):
        yield _with_metrics(planned.on_disk, SessionDir(existing.runs / planned.directory))


def run_states(runs: Path) -> Iterator[SessionState]:
    """Every session of a run directory."""
    for directory in Runs(runs).sessions():
        yield _with_metrics(directory.read_state(directory.recorded()), directory)


def _with_metrics(state: SessionState, directory: SessionDir) -> SessionState:
    return state if state.state == "new" else state.with_log_point(last_row(directory.metrics) or {})
