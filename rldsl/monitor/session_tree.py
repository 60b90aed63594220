"""The tree of experiments, trials and sessions as the rows of a table: filtered, sorted, folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rldsl.monitor.filter import Filter
from rldsl.monitor.session_index import SessionSnapshot
from rldsl.report.varied_settings import VariedSettings

FOLD_ABOVE = 100
"""With more sessions than this, trials start folded."""
STATE_ORDER = {"failed": 0, "running": 1, "resume": 2, "paused": 3, "new": 4, "done": 5}
"""The states, those that need attention first."""


@dataclass(slots=True)
class TreeRow:
    """A row of the tree: an experiment or a trial with its sessions, or a single session."""

    key: str
    label: str
    depth: int
    sessions: list[SessionSnapshot]
    group: bool
    open: bool = False
    _summary: Summary | None = None

    @property
    def summary(self) -> Summary:
        """What the columns show; computed on first use."""
        if self._summary is None:
            self._summary = summarize(self.sessions)
        return self._summary


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals and means over some sessions."""

    states: Counter[str]
    backend: str
    progress: float
    frame: int
    frames: int
    fps: float | None
    episode_return: float | None
    episode_return_ma: float | None
    target: float | None
    left: float | None
    changed: float | None

    @property
    def state(self) -> str:
        """The state that needs attention most."""
        return min(self.states, key=STATE_ORDER.__getitem__)


def summarize(sessions: Iterable[SessionSnapshot]) -> Summary:
    """Sums frames and speed, averages returns, and takes the longest of the remaining times."""
    sessions = list(sessions)
    statuses = [session.status for session in sessions]
    frame, frames = sum(status.frame for status in statuses), sum(status.frames for status in statuses)
    speeds = [status.fps for status in statuses if status.fps and (status.state == "running" or len(sessions) == 1)]
    backends = {session.backend for session in sessions if session.backend}
    return Summary(
        states=Counter(status.state for status in statuses),
        backend=backends.pop() if len(backends) == 1 else "mixed" if backends else "",
        progress=min(1.0, frame / frames) if frames else 0.0,
        frame=frame,
        frames=frames,
        fps=sum(speeds) if speeds else None,
        episode_return=_mean(status.episode_return for status in statuses),
        episode_return_ma=_mean(status.episode_return_ma for status in statuses),
        target=next((status.target for status in statuses if status.target is not None), None),
        left=max((session.left for session in sessions if session.left is not None), default=None),
        changed=max((session.changed for session in sessions if session.changed is not None), default=None),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


SortKey = Callable[[TreeRow], tuple[Any, ...]]


def _descending(number: Callable[[Summary], float | None]) -> SortKey:
    """Largest first; rows without the number come last."""

    def key(row: TreeRow) -> tuple[Any, ...]:
        known = number(row.summary)
        return (known is None, -(known or 0.0), row.label)

    return key


ORDERS: dict[str, SortKey] = {
    "name": lambda row: (_natural(row.label),),
    "state": lambda row: (STATE_ORDER[row.summary.state], _natural(row.label)),
    "return": _descending(lambda summary: summary.episode_return),
    "progress": _descending(lambda summary: summary.progress),
    "fps": _descending(lambda summary: summary.fps),
    "age": _descending(lambda summary: summary.changed),
}


def _natural(label: str) -> tuple[tuple[int, float, str], ...]:
    """A sort key that puts seed 10 after seed 9."""
    return tuple((0, float(word), "") if word.isdigit() else (1, 0.0, word) for word in label.split())


@dataclass
class SessionTree:
    """How the tree is displayed: its filter, its order, and what is folded."""

    filter: Filter = field(default_factory=Filter)
    order: str = "name"
    reverse: bool = False
    folded: dict[str, bool] = field(default_factory=dict)  # by row key; what the user folded or unfolded

    def rows(self, sessions: Mapping[str, SessionSnapshot], varied: Mapping[str, VariedSettings]) -> list[TreeRow]:
        """The rows to show, from top to bottom."""
        matching = [session for session in sessions.values() if self._matches(session, varied)]
        fold = len(matching) > FOLD_ABOVE
        experiments: dict[str, list[SessionSnapshot]] = {}
        for session in matching:
            experiments.setdefault(session.status.experiment, []).append(session)
        top = [TreeRow(name, name, 0, members, group=True) for name, members in experiments.items()]
        return [row for experiment in self._sorted(top) for row in self._expand(experiment, varied, fold)]

    def _matches(self, session: SessionSnapshot, varied: Mapping[str, VariedSettings]) -> bool:
        return not self.filter or self.filter.accepts(filter_fields(session, varied))

    def _expand(self, experiment: TreeRow, varied: Mapping[str, VariedSettings], fold: bool) -> list[TreeRow]:
        """An experiment and, unless it is folded, its trials; with a single trial, directly its sessions."""
        experiment.open = not self.folded.get(experiment.key, fold and len(experiment.sessions) > FOLD_ABOVE)
        if not experiment.open:
            return [experiment]
        trials: dict[str, list[SessionSnapshot]] = {}
        for session in experiment.sessions:
            trials.setdefault(session.trial, []).append(session)
        settings = varied.get(experiment.key) or VariedSettings()
        if len(trials) == 1 and not settings.paths:
            return [experiment, *self._sorted(_session_rows(experiment.sessions, 1))]
        rows = self._trial_rows(experiment, trials, settings)
        return [experiment, *(row for trial in rows for row in self._expand_trial(trial, fold))]

    def _trial_rows(
        self, experiment: TreeRow, trials: Mapping[str, list[SessionSnapshot]], settings: VariedSettings
    ) -> list[TreeRow]:
        rows = []
        for trial, sessions in trials.items():
            label = settings.label(trial) or trial
            if len(sessions) == 1:
                rows += _session_rows(sessions, 1, label)
            else:
                rows.append(TreeRow(f"{experiment.key} {trial}", label, 1, sessions, group=True))
        return self._sorted(rows)

    def _expand_trial(self, row: TreeRow, fold: bool) -> list[TreeRow]:
        if not row.group:
            return [row]
        row.open = not self.folded.get(row.key, fold)
        return [row, *self._sorted(_session_rows(row.sessions, 2))] if row.open else [row]

    def _sorted(self, rows: list[TreeRow]) -> list[TreeRow]:
        return sorted(rows, key=ORDERS[self.order], reverse=self.reverse)


def _session_rows(sessions: Iterable[SessionSnapshot], depth: int, label: str = "") -> list[TreeRow]:
    prefix = f"{label} " if label else ""
    return [
        TreeRow(session.path, f"{prefix}seed {session.status.seed}", depth, [session], group=False)
        for session in sessions
    ]


def filter_fields(session: SessionSnapshot, varied: Mapping[str, VariedSettings]) -> dict[str, str]:
    """The fields of a session that a filter can test."""
    settings = varied.get(session.status.experiment)
    return {
        "status": session.status.state,
        "env": session.env,
        "algo": session.agent,
        "experiment": session.status.experiment,
        "id": session.status.session,
        "backend": session.backend,
        "seed": str(session.status.seed),
        "differs": settings.label(session.trial) if settings else "",
    }
