"""Children that write, and that can be killed at any moment."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Child:
    """A Python process that runs a script with arguments and acknowledges by printing lines."""

    def __init__(self, script: str, *arguments: object) -> None:
        command = [sys.executable, "-u", "-c", textwrap.dedent(script), *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().decode().strip()

    def kill(self) -> list[str]:
        """Ends the process without warning; returns the acknowledgements that were not read yet."""
        self.process.send_signal(signal.SIGKILL)
        return self.finish()

    def finish(self) -> list[str]:
        output, _ = self.process.communicate()
        return output.decode().split()


@pytest.fixture
def child() -> Iterator[Callable[..., Child]]:
    children: list[Child] = []

    def start(script: str, *arguments: object) -> Child:
        children.append(Child(script, *arguments))
        return children[-1]

    yield start
    for each in children:
        if each.process.poll() is None:
            each.kill()


@pytest.fixture
def file_size_limit() -> Callable[[int], None]:
    """Makes files larger than a limit fail to grow, as on a full disk, until the test has run."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    return lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Lifts the limit before pytest says how the test went: its own output may be a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        return (yield)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
