"""A user's own project in a temporary directory, and the commands that people run in it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CARTPOLE = ROOT / "experiments" / "classic" / "cartpole.py"
CLOCKED = ("seconds", "fps")
"""The columns of metrics.csv that tell of the clock and not of the work."""


class Project:
    """A directory with an experiment file `exp.py`; its runs are in `runs`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runs = root / "runs"
        self.started: list[subprocess.Popen[str]] = []

    def write(self, text: str, name: str = "exp.py") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def python(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """`python ARGUMENTS` in the project, to its end."""
        return self._run([sys.executable, *map(str, arguments)])

    def rldsl(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """`rldsl ARGUMENTS` in the project, to its end."""
        return self._run([str(Path(sys.executable).with_name("rldsl")), *map(str, arguments)])

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """`python ARGUMENTS` in a process group of its own, while the test goes on."""
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            cwd=self.root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.root, env=environment(), capture_output=True, text=True, timeout=120, check=False
        )

    @property
    def sessions(self) -> list[Path]:
        """The directories of all sessions, in order."""
        return sorted(path.parent for path in self.runs.glob("*/*/*/session.json"))

    @property
    def session(self) -> Path:
        """The directory of the only session."""
        (path,) = self.sessions
        return path

    def files(self) -> set[str]:
        """Everything in the project, by relative path."""
        ours = (path for path in self.root.rglob("*") if "__pycache__" not in path.parts)
        return {str(path.relative_to(self.root)) for path in ours}


def environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "160", "TERM": "xterm", "PYTHONDONTWRITEBYTECODE": "1"}


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def until(holds: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Waits for something that another process does; returns what it waited for."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
    return found


def rows(session: Path) -> list[dict[str, str]]:
    """The log points of a session."""
    path = session / "metrics.csv"
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def work(session: Path) -> list[dict[str, str]]:
    """The log points of a session without what the clock says."""
    return [{name: cell for name, cell in row.items() if name not in CLOCKED} for row in rows(session)]


def events(session: Path) -> list[dict[str, Any]]:
    """The journal of a session, without checksums."""
    path = session / "journal.jsonl"
    records = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return [{name: value for name, value in record.items() if name != "crc"} for record in records]
