"""The journal: what happened to a session, one JSON object a line, never rewritten."""

from __future__ import annotations

import json
import re
import sys
import time
import zlib
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.spec.json_text import parse_json
from rldsl.store.files import TailReader, append_line
from rldsl.store.session_state import SessionState, State

Event = dict[str, Any]

ENDS = frozenset({"stopped", "paused", "done", "failed", "crashed"})
STATUSES = ENDS | {"created", "started"}
PROGRESS = STATUSES | {"checkpoint", "extended"}
COMPILING, COMPILED = "compiling", "compiled"
"""Events around a compilation, during which nothing is trained."""


CHECKSUM = ', "crc": "{:08x}"}}'
"""How a line ends: the CRC-32 of the line without this field."""
CHECKSUM_LENGTH = len(CHECKSUM.format(0))


LONGEST_TEXT = 1000
_DAMAGED_NAME = re.compile(r', "(?:.rc|c.c|cr.)": "[0-9a-f]{8}"}$')


class Garbage(NamedTuple):
    """A line of the journal that is not an event."""

    text: str


STATE_OF: dict[str, State] = {
    "created": "new",
    "started": "resume",
    "stopped": "resume",
    "crashed": "resume",
    "paused": "paused",
    "done": "done",
    "failed": "failed",
}
"""The state of a session by the last status event of its journal, if no process holds it."""


class Journal:
    def __init__(self, path: Path, durable: bool = True) -> None:
        self.path = path
        self.durable = durable

    def append(self, event: str, **facts: Any) -> None:
        """Returns once the event is on the disk, or for a journal that is not durable, on its way there."""
        record = {"time": round(time.time(), 3), "event": event, **facts}
        append_line(self.path, _with_checksum(json.dumps(record)), durable=self.durable)


class JournalReader:
    """Follows a journal; `state` is `start` after all events that were read so far."""

    def __init__(self, path: Path, start: SessionState | None = None) -> None:
        self.start = self.state = start or SessionState()
        self._tail = TailReader(path)

    def read_new(self) -> list[Event | Garbage]:
        events = [parse_event(line) for line in self._tail.read_new()]
        self.state = fold(events, self.start if self._tail.restarted else self.state)
        if self._tail.error:
            reason = f"its journal cannot be read: {self._tail.error}"
            self.state = replace(self.state, state="failed", status="failed", reason=reason)
        return events


def read_journal(path: Path) -> list[Event | Garbage]:
    return [parse_event(line) for line in TailReader(path).read_new()]


def parse_event(line: str) -> Event | Garbage:
    try:
        record = parse_json(line)
    except ValueError:
        return Garbage(line)
    if isinstance(record, dict) and isinstance(record.get("event"), str) and _intact(record, line):
        return record
    return Garbage(line)


def _with_checksum(text: str) -> str:
    return text[:-1] + CHECKSUM.format(zlib.crc32(text.encode()))


def _intact(record: Event, line: str) -> bool:
    """Whether a line is what was written; lines of earlier versions have no checksum. Removes the field."""
    if "crc" not in record:
        return _DAMAGED_NAME.search(line) is None
    del record["crc"]
    return line == _with_checksum(f"{line[:-CHECKSUM_LENGTH]}}}")


def fold(events: Iterable[Event | Garbage], start: SessionState | None = None) -> SessionState:
    """The state after all events."""
    return reduce(advance, events, start or SessionState())


def advance(state: SessionState, event: Event | Garbage) -> SessionState:
    """The state after one more event."""
    if isinstance(event, Garbage):
        return replace(state, unreadable=state.unreadable + 1)
    name, now = event["event"], _number(event, "time")
    changes: dict[str, Any] = {"last_event": name}
    if now is not None:
        changes |= {"last_time": now, "first_time": now if state.first_time is None else state.first_time}
    if name in STATUSES:
        reason = event.get("reason") if name in ("stopped", "failed", "crashed", "done") else None
        changes |= {"status": name, "state": STATE_OF[name], "reason": printable(reason)}
    if name == "fallback" and event.get("reason"):
        changes["fallbacks"] = (*state.fallbacks, printable(event["reason"]) or "")
    if name == "started" or name in ENDS:
        changes["metrics_sha256"] = _digest_of_metrics(event)
    if name == "started":
        changes |= {"attempts": state.attempts + 1, "attempt_start": now, "earlier_seconds": state.seconds}
        changes["device"] = str(event["device"]) if "device" in event else None
    elif name in PROGRESS:
        changes["seconds"] = state.earlier_seconds + _seconds_of_attempt(state, event, now)
    if name in ENDS:
        changes["attempt_start"] = None
    if name == COMPILING:
        changes["compiling_since"] = now
    elif name in STATUSES or name == COMPILED:
        changes["compiling_since"] = None
    if name in ("started", "extended"):
        changes |= _code(state, event)
    return replace(state, **changes, **_frames(event))


def _digest_of_metrics(event: Event) -> str | None:
    metrics = event.get("metrics")
    return str(metrics["sha256"]) if isinstance(metrics, dict) and "sha256" in metrics else None


def _code(state: SessionState, event: Event) -> dict[str, Any]:
    code = event.get("code")
    if not isinstance(code, str):
        return {"code": None}
    return {"code": code, "codes": state.codes if code in state.codes else (*state.codes, code)}


def _frames(event: Event) -> dict[str, Any]:
    frame = _number(event, "frame")
    if frame is None or event["event"] not in PROGRESS:
        return {}
    return {"frame": int(frame)} | ({"checkpoint_frame": int(frame)} if event["event"] == "checkpoint" else {})


def _seconds_of_attempt(state: SessionState, event: Event, now: float | None) -> float:
    """The seconds that the event gives for its attempt; otherwise the time since the attempt started."""
    stated = _number(event, "seconds")
    if stated is not None:
        return max(0.0, stated)
    if now is None or state.attempt_start is None:
        return state.seconds - state.earlier_seconds
    return max(0.0, now - state.attempt_start)


def printable(text: object) -> str | None:
    """A text of a journal without control characters, which could change what a terminal shows; None for nothing."""
    shown = "".join(mark if mark.isprintable() else " " for mark in str(text)[:LONGEST_TEXT]) if text else None
    return shown and shown.strip()


def _number(event: Event, key: str) -> float | None:
    """A finite number of the event; whatever else a foreign hand wrote there counts as nothing."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < sys.maxsize else None
