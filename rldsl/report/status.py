"""The states of sessions, for `status`, `list` and the monitor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.store.integrity import MetricsCheck
from rldsl.store.metrics import last_row
from rldsl.store.notes import read_notes
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState
from rldsl.store.set_aside import all_set_aside

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
    check = MetricsCheck()
    for planned in existing.sessions(plan):
        yield _with_metrics(planned.on_disk, SessionDir(existing.runs / planned.directory), check)


def run_states(runs: Path) -> Iterator[SessionState]:
    """Every session of a run directory."""
    check = MetricsCheck()
    for directory in Runs(runs).sessions():
        yield _with_metrics(directory.read_state(directory.recorded()), directory, check)


def set_aside_states(runs: Path) -> Iterator[SessionState]:
    """The sessions that were set aside to be trained again, each with the directory where it is now."""
    check = MetricsCheck()
    for path, original in all_set_aside(runs):
        directory = SessionDir(path)
        session = SessionDir(original)
        start = SessionState(session=session.id, seed=session.seed or 0, directory=str(path))
        yield _with_metrics(directory.read_state(start), directory, check)


def _with_metrics(state: SessionState, directory: SessionDir, check: MetricsCheck) -> SessionState:
    notes = read_notes(directory.path)
    state = replace(state, tags=notes.tags, notes=notes.text)
    if state.state == "new":
        return state
    checked = replace(state, damage=state.damage or check.damage(directory.metrics, state))
    return checked.with_log_point(last_row(directory.metrics) or {})
