"""Starting longer sessions where shorter ones ended, before they are launched."""

from __future__ import annotations

from collections.abc import Iterable

from rldsl.plan.existing import Existing, PlannedSession, planned_session
from rldsl.plan.extend import Extension
from rldsl.spec.gin_text import session_gin
from rldsl.store.extend_session import extend_session
from rldsl.store.log_points import LogPoints


def extend_sessions(sessions: Iterable[PlannedSession], existing: Existing) -> list[PlannedSession]:
    """The sessions; new ones that can continue a finished session with fewer frames do so from now on."""
    return [_extended(planned, existing) for planned in sessions]


def _extended(planned: PlannedSession, existing: Existing) -> PlannedSession:
    extension = existing.extension(planned)
    if not isinstance(extension, Extension):
        return planned
    from rldsl.maths.scores import WINDOW  # its import of numpy takes a while

    session, trial = planned.row.session(planned.seed), planned.row.trial
    log_points = LogPoints(trial.budget.log_interval, trial.env.num_envs, WINDOW) if extension.thinned else None
    extend_session(
        existing.runs,
        planned.directory,
        session.record(),
        session_gin(session),
        extension.source,
        extension.frame,
        log_points,
    )
    return planned_session(planned.row, planned.seed, existing.runs, code=existing.code)
