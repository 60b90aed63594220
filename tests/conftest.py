"""A project for each test, and an end to whatever it started."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import Project, command_line


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
        pid = json.loads(alive.read_text())["pid"]
        if str(tmp_path) in command_line(pid):
            os.kill(pid, signal.SIGKILL)
