"""The tree of experiments, trials and sessions as the rows of a table: filtered, sorted, folded."""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rldsl.monitor.filter import Filter
from rldsl.monitor.filter_subject import SessionSubject, is_number
from rldsl.monitor.palette import attention
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.varied_settings import VariedSettings

FOLD_ABOVE = 100
"""With more sessions than this, trials start folded."""


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
        return min(self.states, key=attention)


def summarize(sessions: Iterable[SessionSnapshot]) -> Summary:
    """Sums frames and speed, averages returns, and takes the longest of the remaining times."""
    sessions = list(sessions)
    statuses = [session.status for session in sessions]
    frame, frames = sum(status.frame for status in statuses), sum(status.frames for status in statuses)
    speeds = [session.fps for session in sessions if session.fps and (session.live or len(sessions) == 1)]
    backends = {session.backend for session in sessions if session.backend}
    return Summary(
        states=Counter(session.state for session in sessions),
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
    "state": lambda row: (attention(row.summary.state), _natural(row.label)),
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
    """How the tree is displayed: its filter, its order, and what is folded.

    The rows of an experiment are kept until one of its sessions changes, so that a change costs little however many
    sessions there are.
    """

    filter: Filter = field(default_factory=Filter)
    order: str = "name"
    reverse: bool = False
    folded: dict[str, bool] = field(default_factory=dict)  # by row key; what the user folded or unfolded
    now: Callable[[], float] = time.time
    matched: set[str] = field(default_factory=set)  # the paths of the sessions that the filter accepts
    varied: Mapping[str, VariedSettings] = field(default_factory=dict)
    _members: dict[str, dict[str, SessionSnapshot]] = field(default_factory=dict)  # by experiment
    _stale: set[str] = field(default_factory=set)
    _accepted: dict[str, list[SessionSnapshot]] = field(default_factory=dict)
    _tops: dict[str, TreeRow] = field(default_factory=dict)
    _blocks: dict[str, list[TreeRow]] = field(default_factory=dict)
    _subjects: dict[str, SessionSubject] = field(default_factory=dict)
    _rows: dict[str, TreeRow] = field(default_factory=dict)
    _verdicts: dict[str, tuple[SessionSnapshot, Filter, bool]] = field(default_factory=dict)
    _view: tuple[object, ...] = ()
    _known: Mapping[str, SessionSnapshot] | None = None
    _fold: bool | None = None

    def changed(self, experiment: str) -> None:
        """A session of this experiment was added, changed or removed."""
        self._stale.add(experiment)

    def fold(self, key: str, folded: bool) -> None:
        """Folds or unfolds a group."""
        self.folded[key] = folded
        self._blocks.pop(key, None)
        for name in [name for name in self._blocks if key.startswith(f"{name} ")]:
            del self._blocks[name]

    def fold_all(self, folded: bool) -> None:
        """Folds or unfolds every group."""
        trials = {f"{name} {one.trial}" for name, members in self._members.items() for one in members.values()}
        self.folded = dict.fromkeys(self._members.keys() | trials, folded)
        self._blocks = {}

    def rows(self, sessions: Mapping[str, SessionSnapshot], varied: Mapping[str, VariedSettings]) -> list[TreeRow]:
        """The rows to show, from top to bottom."""
        self.varied = varied
        self._regroup(sessions)
        view = (self.filter, self.order, self.reverse)
        if view != self._view or self.filter.timed:
            if self.filter != (self._view or (None,))[0] or self.filter.timed:
                self._accepted, self._tops = {}, {}
            self._view, self._blocks = view, {}
        for name in self._members.keys() - self._accepted.keys():
            self._accepted[name] = self._matching(name, varied)
            self._tops.pop(name, None)
            self._blocks.pop(name, None)
        shown = {name: members for name, members in self._accepted.items() if members}
        self.matched = {one.path for members in shown.values() for one in members}
        fold = len(self.matched) > FOLD_ABOVE
        if fold != self._fold:
            self._fold, self._blocks = fold, {}
        for name, members in shown.items():
            if name not in self._tops:
                self._tops[name] = self._row(name, name, 0, members, group=True)
        rows: list[TreeRow] = []
        for top in self._sorted([self._tops[name] for name in shown]):
            if top.key not in self._blocks:
                self._blocks[top.key] = self._expand(top, varied, fold)
            rows += self._blocks[top.key]
        return rows

    def _regroup(self, sessions: Mapping[str, SessionSnapshot]) -> None:
        """Brings the members of the experiments that changed up to date."""
        if sessions is not self._known:
            self._known = sessions
            self._stale |= self._members.keys() | {one.status.experiment for one in sessions.values()}
        if not self._stale:
            return
        for name in self._stale:
            for kept in (self._members, self._accepted, self._tops, self._blocks):
                kept.pop(name, None)
        for path, session in sessions.items():
            if session.status.experiment in self._stale:
                self._members.setdefault(session.status.experiment, {})[path] = session
        self._stale.clear()

    def _matching(self, name: str, varied: Mapping[str, VariedSettings]) -> list[SessionSnapshot]:
        members = list(self._members[name].values())
        if not self.filter:
            return members
        settings = varied.get(name)
        return [one for one in members if self._accepts(one, settings)]

    def _accepts(self, session: SessionSnapshot, varied: VariedSettings | None) -> bool:
        known = self._verdicts.get(session.path)
        if known is None or known[0] is not session or known[1] is not self.filter or self.filter.timed:
            known = session, self.filter, self.filter.accepts(self._subject(session, varied))
            self._verdicts[session.path] = known
        return known[2]

    def _subject(self, session: SessionSnapshot, varied: VariedSettings | None) -> SessionSubject:
        subject = self._subjects.get(session.path)
        if subject is None or subject.session is not session:
            subject = self._subjects[session.path] = SessionSubject(session, varied, self.now)
        return subject

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
            return [experiment, *self._sorted(self._session_rows(experiment.sessions, 1))]
        rows = self._trial_rows(experiment, trials, settings)
        return [experiment, *(row for trial in rows for row in self._expand_trial(trial, fold))]

    def _trial_rows(
        self, experiment: TreeRow, trials: Mapping[str, list[SessionSnapshot]], settings: VariedSettings
    ) -> list[TreeRow]:
        rows = []
        for trial, sessions in trials.items():
            label = settings.label(trial) or trial
            if len(sessions) == 1:
                rows += self._session_rows(sessions, 1, label)
            else:
                rows.append(self._row(f"{experiment.key} {trial}", label, 1, sessions, group=True))
        return self._sorted(rows)

    def _expand_trial(self, row: TreeRow, fold: bool) -> list[TreeRow]:
        if not row.group:
            return [row]
        row.open = not self.folded.get(row.key, fold)
        return [row, *self._sorted(self._session_rows(row.sessions, 2))] if row.open else [row]

    def _session_rows(self, sessions: Iterable[SessionSnapshot], depth: int, label: str = "") -> list[TreeRow]:
        prefix = f"{label} " if label else ""
        return [self._row(one.path, f"{prefix}seed {one.status.seed}", depth, [one], group=False) for one in sessions]

    def _row(self, key: str, label: str, depth: int, sessions: list[SessionSnapshot], *, group: bool) -> TreeRow:
        """A row; the same one as before, with its summary, if its sessions have not changed."""
        row = self._rows.get(key)
        if row is None or row.label != label or row.depth != depth or not _same(row.sessions, sessions):
            row = self._rows[key] = TreeRow(key, label, depth, sessions, group=group)
        return row

    def _sorted(self, rows: list[TreeRow]) -> list[TreeRow]:
        return sorted(rows, key=ORDERS.get(self.order) or self._by_value, reverse=self.reverse)

    def _by_value(self, row: TreeRow) -> tuple[Any, ...]:
        """Largest first, like the other orders; texts by the alphabet; rows without the value come last."""
        value = self.value(row, self.order)
        if value is None:
            return (2, 0.0, "", row.label)
        return (0, -value, "", row.label) if is_number(value) else (1, 0.0, str(value), row.label)

    def value(self, row: TreeRow, name: str) -> Any:
        """A metric, setting or other value of a row: of a group the mean, or the value that all sessions share."""
        varied = self.varied.get(row.sessions[0].status.experiment) if row.sessions else None
        values = [self._subject(one, varied).value(name) for one in row.sessions]
        numbers = [one for one in values if is_number(one)]
        if numbers:
            return fmean(numbers)  # type: ignore[arg-type]
        known = {str(one) for one in values if one is not None}
        return known.pop() if len(known) == 1 else None


def _same(before: list[SessionSnapshot], after: list[SessionSnapshot]) -> bool:
    """Whether two lists have the same objects."""
    return len(before) == len(after) and all(map(operator.is_, before, after))
