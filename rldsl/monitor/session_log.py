"""The log of sessions: what they printed, or, if that is nothing, their journal as text; of one or of several."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from rldsl.monitor.log_tail import LogTail
from rldsl.report.words import value
from rldsl.store.files import TailReader
from rldsl.store.journal import Event, Garbage, parse_event
from rldsl.store.session_dir import SessionDir

JOURNAL_TITLE = "log.txt is empty; the journal:"


def event_line(event: Event | Garbage) -> str:
    """An event of a journal as a line of text."""
    if isinstance(event, Garbage):
        return f"unreadable: {event.text[:80]!r}"
    fields = {name: field for name, field in event.items() if name not in ("time", "event")}
    return f"{event_time(event)} {event['event']:<10} " + " ".join(
        f"{name}={value(one)}" for name, one in fields.items()
    )


def event_time(event: Event) -> str:
    """When it happened, or `?`."""
    timestamp = event.get("time")
    try:
        return time.strftime("%m-%d %H:%M:%S", time.localtime(timestamp))
    except (TypeError, ValueError, OverflowError, OSError):
        return "?"


class SessionLog:
    """One session. Until its log has a line, the journal is shown instead."""

    def __init__(self, runs: Path, path: str, prefix: str = "") -> None:
        directory = SessionDir(runs / path)
        self.prefix = prefix
        self._tail, self._journal = LogTail(directory.log), TailReader(directory.journal.path)
        self.shows_journal = True
        self._began = False

    def read_new(self) -> tuple[bool, list[str]]:
        """Whether what was shown so far has to be removed, and the new lines."""
        lines = self._tail.read_new()
        if lines and self.shows_journal:
            self.shows_journal = False
            return self._began, [self.prefix + line for line in lines]
        if not self.shows_journal:
            return False, [self.prefix + line for line in lines]
        return False, self._journal_lines()

    def _journal_lines(self) -> list[str]:
        try:
            events = [parse_event(line) for line in self._journal.read_new()]
        except OSError:
            events = []
        lines = [event_line(event) for event in events]
        if lines and not self._began:
            self._began = True
            lines.insert(0, JOURNAL_TITLE)
        return [self.prefix + line for line in lines]


class MergedLog:
    """The logs of several sessions, each line with the name of its session; new lines in the order of arrival."""

    def __init__(self, runs: Path, names: Mapping[str, str]) -> None:
        """`names` are those of the sessions, by path; with a single session, its lines have no name."""
        width = max(map(len, names.values()), default=0)
        prefixes = {path: f"{name:<{width}} │ " if len(names) > 1 else "" for path, name in names.items()}
        self.names = dict(names)
        self.logs = {path: SessionLog(runs, path, prefix) for path, prefix in prefixes.items()}

    @property
    def shows_journal(self) -> bool:
        return all(log.shows_journal for log in self.logs.values())

    def read_new(self) -> tuple[bool, list[str]]:
        """Whether what was shown so far has to be removed, and the new lines."""
        restart, new = False, []
        for log in self.logs.values():
            again, lines = log.read_new()
            restart |= again and len(self.logs) == 1
            new += lines
        return restart, new
