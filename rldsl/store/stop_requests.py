"""Requests to stop sessions, for commands in the foreground that have not started them yet.

A session that runs is asked by a signal. One that waits for its turn has no process and perhaps no directory: `stop`
appends its id to a file of the run directory, and the command that would have started it reads the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from rldsl.spec.json_text import parse_json
from rldsl.store.files import TailReader, append_line

STOPS_FILE = ".stops.jsonl"


def request_stop(runs: Path, sessions: Iterable[str]) -> None:
    """Records that these sessions are not to be started by commands that are under way."""
    if runs.is_dir() and (ids := sorted(sessions)):
        append_line(runs / STOPS_FILE, json.dumps({"sessions": ids}))


class StopRequests:
    """The requests since this object was made."""

    def __init__(self, runs: Path) -> None:
        self._reader = TailReader(runs / STOPS_FILE)
        self._reader.read_new()

    def new(self) -> set[str]:
        """The ids of sessions in requests since the last call."""
        return {id for line in self._reader.read_new() for id in _sessions(line)}


def _sessions(line: str) -> list[str]:
    try:
        found = parse_json(line)["sessions"]
    except (ValueError, KeyError, TypeError):
        return []
    return [id for id in found if isinstance(id, str)] if isinstance(found, list) else []
