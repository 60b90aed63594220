"""A session as a filter and the columns see it: texts, numbers, metrics and settings by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from rldsl.monitor.filter import FIELDS
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.varied_settings import VariedSettings
from rldsl.spec.paths import get

Getter = Callable[[SessionSnapshot, float], Any]

VALUES: dict[str, Getter] = {
    "return": lambda one, now: one.status.episode_return,
    "return_ma": lambda one, now: one.status.episode_return_ma,
    "frame": lambda one, now: one.status.frame,
    "frames": lambda one, now: one.status.frames,
    "progress": lambda one, now: one.status.frame / one.status.frames if one.status.frames else None,
    "fps": lambda one, now: one.fps,
    "time": lambda one, now: one.status.seconds,
    "left": lambda one, now: one.left,
    "age": lambda one, now: None if one.changed is None else now - one.changed,
    "seed": lambda one, now: one.status.seed,
    "attempts": lambda one, now: one.status.attempts,
    "target": lambda one, now: one.status.target,
}


class SessionSubject:
    """Fields are computed when a filter first asks for them."""

    __slots__ = ("_all", "_label", "now", "session", "varied")

    def __init__(self, session: SessionSnapshot, varied: VariedSettings | None, now: Callable[[], float]) -> None:
        self.session, self.varied, self.now = session, varied, now
        self._all: str | None = None
        self._label: int = -1

    def text(self, field: str) -> str:
        return self._texts()[field]().lower()

    def everything(self) -> str:
        settings = len(self.varied.paths) if self.varied else 0
        if self._all is None or self._label != settings:  # the label grows as more trials are read
            texts = self._texts()
            self._all, self._label = "\n".join(texts[field]() for field in FIELDS).lower(), settings
        return self._all

    def _texts(self) -> dict[str, Callable[[], str]]:
        session, status = self.session, self.session.status
        return {
            "status": lambda: session.state,
            "env": lambda: session.env,
            "algo": lambda: session.agent,
            "experiment": lambda: status.experiment,
            "id": lambda: status.session,
            "backend": lambda: session.backend,
            "seed": lambda: str(status.seed),
            "differs": lambda: self.varied.label(session.trial) if self.varied else "",
            "tag": lambda: " ".join(status.tags),
            "note": lambda: session.note,
        }

    def value(self, name: str) -> object:
        if name in VALUES:
            return VALUES[name](self.session, self.now())
        if name in self.session.row:
            return self.session.row[name]
        if name in self.session.facts:
            return self.session.facts[name]
        return setting(self.varied, self.session.trial, name) if self.varied else None


def setting(varied: VariedSettings, trial: str, name: str) -> Any:
    """The value of the setting with this path, or the end of it: `gamma` finds `agent.gamma`. None if there is none."""
    own = varied.trials.get(trial, {})
    for path, found in own.items():
        if path == name or path.endswith(f".{name}"):
            return found
    where = _path_in(varied, name)
    if where is None:
        return None
    try:
        return get(varied.first, where)
    except (KeyError, AttributeError, TypeError):
        return None


def _path_in(varied: VariedSettings, name: str) -> str | None:
    """The path of a setting in the first trial; found once per experiment and name."""
    cache = _paths.setdefault(varied, {})
    if name not in cache:
        paths = leaves(varied.first or {})
        cache[name] = next((path for path, _ in paths if path == name or path.endswith(f".{name}")), None)
    return cache[name]


_paths: WeakKeyDictionary[VariedSettings, dict[str, str | None]] = WeakKeyDictionary()


def leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a spec by their paths."""
    for name, item in data.items():
        path = f"{prefix}{name}"
        if isinstance(item, dict):
            yield from leaves(item, f"{path}.")
        else:
            yield path, item


def is_number(value: object) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
