"""The tree of experiments, trials and sessions as the lines of a table: filtered, sorted, folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rldsl.monitor.facts import Seen
from rldsl.monitor.families import Family
from rldsl.monitor.filter import Filter

MANY = 100
"""Sessions from which on trials start folded."""
URGENCY = {"failed": 0, "running": 1, "resume": 2, "new": 3, "done": 4}


@dataclass(slots=True)
class Line:
    """A line of the tree: a group of sessions, or one."""

    key: str
    label: str
    depth: int
    sessions: list[Seen]
    group: bool
    open: bool = False
    _figures: Figures | None = None

    @property
    def figures(self) -> Figures:
        """What the line shows; worked out when it is first looked at."""
        if self._figures is None:
            self._figures = figures(self.sessions)
        return self._figures


@dataclass(frozen=True, slots=True)
class Figures:
    """Some sessions summed up."""

    states: Counter[str]
    place: str
    progress: float
    frame: int
    frames: int
    fps: float | None
    episode_return: float | None
    target: float | None
    left: float | None
    changed: float | None

    @property
    def state(self) -> str:
        """The most urgent of its states."""
        return min(self.states, key=URGENCY.__getitem__)


def figures(sessions: Iterable[Seen]) -> Figures:
    """Progress, frames and speed are sums, returns are means, the time left is that of the last to end."""
    all = list(sessions)
    stats = [one.status for one in all]
    frame, frames = sum(one.frame for one in stats), sum(one.frames for one in stats)
    returns = [one.episode_return for one in stats if one.episode_return is not None]
    speeds = [one.fps for one in stats if one.fps and (one.state == "running" or len(all) == 1)]
    places = {one.place for one in all if one.place}
    return Figures(
        states=Counter(one.state for one in stats),
        place=places.pop() if len(places) == 1 else f"{len(places)} places" if places else "",
        progress=min(1.0, frame / frames) if frames else 0.0,
        frame=frame,
        frames=frames,
        fps=sum(speeds) if speeds else None,
        episode_return=fmean(returns) if returns else None,
        target=next((one.target for one in stats if one.target is not None), None),
        left=max((one.left for one in all if one.left is not None), default=None),
        changed=max((one.changed for one in all if one.changed is not None), default=None),
    )


def _descending(figure: Callable[[Figures], float | None]) -> Callable[[Line], tuple[Any, ...]]:
    """Largest first; what is not known comes last."""

    def key(line: Line) -> tuple[Any, ...]:
        known = figure(line.figures)
        return (known is None, -(known or 0.0), line.label)

    return key


ORDERS: dict[str, Callable[[Line], tuple[Any, ...]]] = {
    "name": lambda line: (_natural(line.label),),
    "state": lambda line: (URGENCY[line.figures.state], _natural(line.label)),
    "return": _descending(lambda one: one.episode_return),
    "progress": _descending(lambda one: one.progress),
    "fps": _descending(lambda one: one.fps),
    "age": _descending(lambda one: one.changed),
}


def _natural(label: str) -> tuple[tuple[int, float, str], ...]:
    """Seed 10 comes after seed 9."""
    return tuple((0, float(word), "") if word.isdigit() else (1, 0.0, word) for word in label.split())


@dataclass
class Outline:
    """How the tree is looked at: what is folded, the filter, the order."""

    filter: Filter = field(default_factory=Filter)
    order: str = "name"
    reverse: bool = False
    folded: dict[str, bool] = field(default_factory=dict)  # what a person folded or unfolded

    def lines(self, seen: Mapping[str, Seen], families: Mapping[str, Family]) -> list[Line]:
        """The lines to show, from top to bottom."""
        chosen = [one for one in seen.values() if self._accepts(one, families)]
        many = len(chosen) > MANY
        experiments: dict[str, list[Seen]] = {}
        for one in chosen:
            experiments.setdefault(one.status.experiment, []).append(one)
        tops = [Line(name, name, 0, sessions, group=True) for name, sessions in experiments.items()]
        return [line for top in self._sorted(tops) for line in self._below(top, families, many)]

    def _accepts(self, one: Seen, families: Mapping[str, Family]) -> bool:
        return not self.filter or self.filter.accepts(subject(one, families))

    def _below(self, top: Line, families: Mapping[str, Family], many: bool) -> list[Line]:
        """An experiment and, if it is unfolded, its trials; with a single trial, its sessions at once."""
        top.open = not self.folded.get(top.key, many and len(top.sessions) > MANY)
        if not top.open:
            return [top]
        trials: dict[str, list[Seen]] = {}
        for one in top.sessions:
            trials.setdefault(one.trial, []).append(one)
        family = families.get(top.key) or Family()
        if len(trials) == 1 and not family.paths:
            return [top, *self._sorted(_leaves(top.sessions, 1))]
        return [top, *(line for each in self._trials(top, trials, family) for line in self._open(each, many))]

    def _trials(self, top: Line, trials: Mapping[str, list[Seen]], family: Family) -> list[Line]:
        made = []
        for trial, sessions in trials.items():
            label = family.label(trial) or trial
            if len(sessions) == 1:
                made += _leaves(sessions, 1, label)
            else:
                made.append(Line(f"{top.key} {trial}", label, 1, sessions, group=True))
        return self._sorted(made)

    def _open(self, line: Line, many: bool) -> list[Line]:
        if not line.group:
            return [line]
        line.open = not self.folded.get(line.key, many)
        return [line, *self._sorted(_leaves(line.sessions, 2))] if line.open else [line]

    def _sorted(self, lines: list[Line]) -> list[Line]:
        return sorted(lines, key=ORDERS[self.order], reverse=self.reverse)


def _leaves(sessions: Iterable[Seen], depth: int, label: str = "") -> list[Line]:
    prefix = f"{label} " if label else ""
    return [Line(one.path, f"{prefix}seed {one.status.seed}", depth, [one], group=False) for one in sessions]


def subject(one: Seen, families: Mapping[str, Family]) -> dict[str, str]:
    """What the filter looks at."""
    family = families.get(one.status.experiment)
    return {
        "status": one.status.state,
        "env": one.env,
        "algo": one.agent,
        "experiment": one.status.experiment,
        "id": one.status.session,
        "place": one.place,
        "seed": str(one.status.seed),
        "differs": family.label(one.trial) if family else "",
    }
