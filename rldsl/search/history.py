"""The history of a search: the events of its journal, and the trials that they describe.

What a search does next is a pure function of its spec and of these events in the order of the journal. A driver that is
killed reads the journal and continues as if nothing had happened.

| event | facts |
|---|---|
| `suggested` | `trial` (0, 1, ...), `point`, `id`: a configuration was chosen; `id` is that of its trial |
| `started` | `trial`, `rung`, `seeds`: it was decided to train these seeds of the trial up to this rung |
| `finished` | `trial`, `rung`, `values` (seed to value, or null), `seconds`: all its seeds have reached the rung |
| `failed` | `trial`, `rung`, `reason`: at least one of its seeds diverged or crashed |
| `retried` | `trial`, `rung`: a failed trial is trained again from its checkpoints |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from annotated_types import Ge, Le
from pydantic import BaseModel, StrictFloat, StrictInt, ValidationError


@dataclass(frozen=True)
class TrialHistory:
    """One trial of a search: its point, and its values at the rungs that it has reached."""

    number: int
    point: Mapping[str, Any]
    id: str
    started: int | None = None
    """The highest rung that it was started for."""
    values: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    """The value of each seed, by rung."""
    seconds: float = 0.0
    failed: str | None = None

    @property
    def reached(self) -> int | None:
        """The highest rung that it has reached."""
        return max(self.values, default=None)

    @property
    def running(self) -> bool:
        """Whether it was started for a rung that it has not reached yet."""
        return self.failed is None and self.started is not None and self.started not in self.values


@dataclass(frozen=True)
class History:
    """The trials of a search after some of its events, by number."""

    trials: tuple[TrialHistory, ...] = ()
    arrivals: tuple[tuple[int, int], ...] = ()
    """The results in the order of the journal: trial and rung, of failed trials too."""

    @classmethod
    def of(cls, events: Iterable[Mapping[str, Any]]) -> History:
        """The history after all events; events of other names are skipped."""
        history = cls()
        for event in events:
            history = history.after(event)
        return history

    def after(self, event: Mapping[str, Any]) -> History:
        """The history after one more event. Repeated events change nothing."""
        name = event["event"]
        if name in _FACTS and not _is_valid(event, len(self.trials)):
            return self
        if name == "suggested":
            return self._suggested(event)
        if name in _ADVANCE:
            before = self.trials[event["trial"]]
            after = _ADVANCE[name](before, event)
            return self if after == before else self._with(after, _arrivals(self.arrivals, event))
        return self

    def _suggested(self, event: Mapping[str, Any]) -> History:
        if event["trial"] < len(self.trials):
            return self
        return replace(self, trials=(*self.trials, TrialHistory(event["trial"], event["point"], event["id"])))

    def _with(self, trial: TrialHistory, arrivals: tuple[tuple[int, int], ...]) -> History:
        return History((*self.trials[: trial.number], trial, *self.trials[trial.number + 1 :]), arrivals)


class _Suggested(BaseModel):
    trial: StrictInt
    point: dict[str, Any]
    id: str


class _Started(BaseModel):
    trial: StrictInt
    rung: Annotated[StrictInt, Ge(0), Le(1000)]


class _Finished(_Started):
    values: dict[str, StrictFloat | StrictInt | None]
    seconds: StrictFloat | StrictInt = 0.0


class _Failed(_Started):
    reason: str


_FACTS: dict[str, type[BaseModel]] = {
    "suggested": _Suggested,
    "started": _Started,
    "finished": _Finished,
    "failed": _Failed,
    "retried": _Started,
}
"""What an event must have; others, which only a damaged journal has, are skipped."""


def _is_valid(event: Mapping[str, Any], trials: int) -> bool:
    """Whether an event has its facts and is about a trial that was suggested, or the next one."""
    try:
        _FACTS[event["event"]].model_validate(event)
    except ValidationError:
        return False
    if event["event"] == "finished" and not all(seed.isdecimal() for seed in event["values"]):
        return False
    return bool(0 <= event["trial"] < trials + (event["event"] == "suggested"))


def _arrivals(before: tuple[tuple[int, int], ...], event: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    if event["event"] in ("finished", "failed"):
        return (*before, (event["trial"], event["rung"]))
    if event["event"] == "retried":
        return tuple(one for one in before if one != (event["trial"], event["rung"]))
    return before


def _started(trial: TrialHistory, event: Mapping[str, Any]) -> TrialHistory:
    return replace(trial, started=max(event["rung"], -1 if trial.started is None else trial.started))


def _finished(trial: TrialHistory, event: Mapping[str, Any]) -> TrialHistory:
    if event["rung"] in trial.values:
        return trial
    values = {int(seed): math.nan if value is None else value for seed, value in event["values"].items()}
    return replace(
        trial, values={**trial.values, event["rung"]: values}, seconds=trial.seconds + event.get("seconds", 0.0)
    )


def _failed(trial: TrialHistory, event: Mapping[str, Any]) -> TrialHistory:
    return replace(trial, failed=trial.failed or event["reason"])


def _retried(trial: TrialHistory, event: Mapping[str, Any]) -> TrialHistory:
    return replace(trial, failed=None)


_ADVANCE = {"started": _started, "finished": _finished, "failed": _failed, "retried": _retried}
