"""Names of the metrics, settings and other values of the sessions, for filters and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rldsl.monitor.filter_subject import leaves

if TYPE_CHECKING:
    from rldsl.monitor.app import WatchApp


def known_names(app: WatchApp) -> set[str]:
    """All settings, and the metrics and facts of one session of each trial's experiment."""
    names = {path for varied in app.index.varied.values() for path, _ in leaves(varied.first or {})}
    return names | {path for varied in app.index.varied.values() for path in varied.paths} | _of_sessions(app)


def column_names(app: WatchApp) -> set[str]:
    """What a column can show: settings in which trials differ, metrics and facts."""
    return {path for varied in app.index.varied.values() for path in varied.paths} | _of_sessions(app)


def _of_sessions(app: WatchApp) -> set[str]:
    one_of_each = {session.status.experiment: session for session in app.sessions.values() if session.row}
    return {name for session in one_of_each.values() for name in (*session.row, *session.facts)}
