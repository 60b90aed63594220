"""A project for each test, and an end to whatever it started."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rldsl.store.claim import read_heartbeat
from tests.project import Project, command_line

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs so, and processes inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project; what it started and the sessions that still run are ended with the test."""
    made = Project(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    for alive in tmp_path.glob("**/alive.json"):
        pid = (read_heartbeat(alive) or {}).get("pid")
        if isinstance(pid, int) and str(tmp_path) in command_line(pid):
            os.kill(pid, signal.SIGKILL)
