"""What a user should be told at once: failures, divergence, stalls, targets reached, searches that finished."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rldsl.monitor.palette import PROBLEMS
from rldsl.monitor.search_index import SearchSnapshot
from rldsl.monitor.snapshot import SessionSnapshot

COLLAPSE = 0.5
COLLAPSE_AFTER = 0.2
"""A return has collapsed if, after a fifth of the budget, it has lost half of what it had gained since its start."""
GAIN = 0.05
"""Smaller gains, as a share of the best return, are noise: losing them is no collapse."""
DIVERGING = "diverging"
GOOD = frozenset({"target reached", "search finished"})


@dataclass(frozen=True)
class Alert:
    """Something that happened, to a session or to a search."""

    time: float
    kind: str
    name: str
    text: str = ""
    path: str = ""

    @property
    def line(self) -> str:
        """As one line of text."""
        return f"{self.name}: {self.kind}" + (f" ({self.text})" if self.text else "")


class AlertTracker:
    """Compares sessions and searches with what they were. What was so from the beginning is no alert."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.diverging: dict[str, str] = {}
        self._reached: set[str] = set()
        self._returns: dict[str, tuple[float, float]] = {}  # the first and the best return, by path
        self._searches: dict[str, SearchSnapshot] = {}

    def is_problem(self, session: SessionSnapshot) -> bool:
        """Whether a session needs attention."""
        return session.state in PROBLEMS or session.path in self.diverging

    def learn(self, path: str, returns: Iterable[float]) -> None:
        """Takes earlier returns of a session into account, in their order."""
        known = list(returns)
        if known:
            best = max([*known, *self._returns.get(path, ())[1:]])
            self._returns[path] = known[0], best

    def observe(self, session: SessionSnapshot, before: SessionSnapshot | None) -> list[Alert]:
        """The alerts of a session that has changed; none if it was not known before."""
        found = [*self._state(session, before), *self._diverging(session), *self._target(session)]
        return found if before is not None else []

    def forget(self, path: str) -> None:
        """A session was deleted."""
        self.diverging.pop(path, None)
        self._returns.pop(path, None)
        self._reached.discard(path)

    def _alert(self, session: SessionSnapshot, kind: str, text: str = "") -> Alert:
        return Alert(self.now(), kind, f"{session.status.experiment} {session.status.session}", text, session.path)

    def _state(self, session: SessionSnapshot, before: SessionSnapshot | None) -> list[Alert]:
        new = before is not None and session.condition != before.condition
        if not new or session.condition not in PROBLEMS:
            return []
        return [self._alert(session, session.condition, session.status.reason or "")]

    def _diverging(self, session: SessionSnapshot) -> list[Alert]:
        why = self._divergence(session) if session.live else ""
        if not why:
            self.diverging.pop(session.path, None)
            return []
        new = session.path not in self.diverging
        self.diverging[session.path] = why
        return [self._alert(session, DIVERGING, why)] if new else []

    def _divergence(self, session: SessionSnapshot) -> str:
        """Why a running session diverges; empty if it does not."""
        for name, value in session.row.items():
            if isinstance(value, float) and not math.isfinite(value):
                return f"{name} is {value}"
        value = session.status.episode_return
        if value is None:
            return ""
        first, best = self._returns.get(session.path, (value, value))
        best = max(best, value)
        self._returns[session.path] = first, best
        late = session.status.frame >= COLLAPSE_AFTER * session.status.frames
        gained = best - first > GAIN * max(abs(best), abs(first))
        collapsed = late and gained and best - value > COLLAPSE * (best - first)
        return f"return fell from {best:.4g} to {value:.4g}" if collapsed else ""

    def _target(self, session: SessionSnapshot) -> list[Alert]:
        value, target = session.status.episode_return, session.status.target
        if value is None or target is None or value < target or session.path in self._reached:
            return []
        self._reached.add(session.path)
        return [self._alert(session, "target reached", f"{value:.4g} of {target:g}")]

    def observe_searches(self, searches: Mapping[str, SearchSnapshot]) -> list[Alert]:
        """Searches whose driver has ended."""
        found = []
        for name, search in searches.items():
            before = self._searches.get(name)
            if before is not None and before.running and not search.running:
                unfinished = sum(row.state == "running" for row in search.rows)
                best = next((row.value for row in search.rows if row.value is not None), None)
                kind = "search stopped" if unfinished else "search finished"
                text = f"{len(search.rows)} trials" + ("" if best is None else f", best {best:.4g}")
                found.append(Alert(self.now(), kind, search.name, text))
        self._searches = dict(searches)
        return found
