"""The journal: what happened to a session, one JSON object a line, never rewritten."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rldsl.store.files import TailReader, append_line

Event = dict[str, Any]
Status = Literal["created", "started", "stopped", "done", "failed"]

ENDS = frozenset({"stopped", "done", "failed"})
STATUSES = ENDS | {"created", "started"}
PROGRESS = STATUSES | {"checkpoint"}


class Garbage(NamedTuple):
    """A line of the journal that is not an event."""

    text: str


class JournalState(NamedTuple):
    """What a journal adds up to."""

    status: Status = "created"
    last: str | None = None  # the last event, unknown ones included
    lives: int = 0  # how often it was started
    frame: int = 0  # where it is: a life that starts from an earlier checkpoint sets it back
    checkpoint_frame: int | None = None
    seconds: float = 0.0  # of work, over all lives; a killed life counts up to its last event
    reason: str | None = None  # why it failed or stopped
    first_time: float | None = None
    last_time: float | None = None
    garbage: int = 0
    life_start: float | None = None
    earlier_seconds: float = 0.0  # of the lives before this one


class Journal:
    def __init__(self, path: Path, durable: bool = True) -> None:
        self.path = path
        self.durable = durable

    def append(self, event: str, **facts: Any) -> None:
        """Returns once the event is on the disk, or for a journal that is not durable, on its way there."""
        record = {"time": round(time.time(), 3), "event": event, **facts}
        append_line(self.path, json.dumps(record), durable=self.durable)


class JournalReader:
    """Follows a journal; `state` is what all that was read so far adds up to."""

    def __init__(self, path: Path) -> None:
        self.state = JournalState()
        self._tail = TailReader(path)

    def read_new(self) -> list[Event | Garbage]:
        events = [parse_event(line) for line in self._tail.read_new()]
        self.state = fold(events, JournalState() if self._tail.restarted else self.state)
        return events


def read_journal(path: Path) -> list[Event | Garbage]:
    return [parse_event(line) for line in TailReader(path).read_new()]


def parse_event(line: str) -> Event | Garbage:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return Garbage(line)
    if isinstance(record, dict) and isinstance(record.get("event"), str):
        return record
    return Garbage(line)


def fold(events: Iterable[Event | Garbage], state: JournalState | None = None) -> JournalState:
    return reduce(advance, events, state or JournalState())


def advance(state: JournalState, event: Event | Garbage) -> JournalState:
    """The state after one more event."""
    if isinstance(event, Garbage):
        return state._replace(garbage=state.garbage + 1)
    name, now = event["event"], _number(event, "time")
    changes: dict[str, Any] = {"last": name}
    if now is not None:
        changes |= {"last_time": now, "first_time": now if state.first_time is None else state.first_time}
    if name in STATUSES:
        changes |= {"status": name, "reason": event.get("reason") and str(event["reason"])}
    if name == "started":
        changes |= {"lives": state.lives + 1, "life_start": now, "earlier_seconds": state.seconds}
    elif name in PROGRESS:
        changes["seconds"] = state.earlier_seconds + _seconds_of_life(state, event, now)
    if name in ENDS:
        changes["life_start"] = None
    return state._replace(**changes, **_frames(event))


def _frames(event: Event) -> dict[str, Any]:
    frame = _number(event, "frame")
    if frame is None or event["event"] not in PROGRESS:
        return {}
    return {"frame": int(frame)} | ({"checkpoint_frame": int(frame)} if event["event"] == "checkpoint" else {})


def _seconds_of_life(state: JournalState, event: Event, now: float | None) -> float:
    """An event may say how long its life has worked; otherwise the clock says it."""
    stated = _number(event, "seconds")
    if stated is not None:
        return max(0.0, stated)
    if now is None or state.life_start is None:
        return state.seconds - state.earlier_seconds
    return max(0.0, now - state.life_start)


def _number(event: Event, key: str) -> float | None:
    """A finite number of the event; whatever else a foreign hand wrote there counts as nothing."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < sys.maxsize else None
