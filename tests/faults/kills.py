"""A worker that dies at its n-th file operation, which an audit hook counts in the run directory."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.train.attempts import Attempts, server

OPERATIONS = frozenset(
    {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "os.listdir", "os.scandir"}
)
"""Audit events of Python that touch files. Writing and syncing have none: these functions are wrapped."""
WRAPPED = ("write", "fsync", "ftruncate")


class Counter:
    """Counts the file operations of this process below a directory; kills it at the n-th, before or after it."""

    def __init__(self, runs: Path, fatal: int | None, outside: Path) -> None:
        self.runs, self.fatal, self.outside = str(runs), fatal, outside
        self.count = 0
        sys.addaudithook(self.hook)
        for name in WRAPPED:
            setattr(os, name, self.wrapped(getattr(os, name)))

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in OPERATIONS:
            return
        path = str(arguments[0])
        if path.startswith(self.runs):
            self.add()
        elif event == "open" and path.startswith("/") and _writes(arguments) and not _elsewhere(path):
            with Path(self.outside).open("a") as file:
                file.write(f"{path}\n")

    def wrapped(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.add()
            return real(*arguments, **options)

        return call

    def add(self) -> None:
        self.count += 1
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def _writes(arguments: tuple[Any, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _elsewhere(path: str) -> bool:
    """Places that are not ours to judge: devices, the log of writes itself, caches of Python and torch."""
    return path.startswith(("/dev/", "/proc/")) or path.endswith("outside.txt") or "cache" in path


def _main(arguments: list[str], runs: str, fatal: int | None, told: str) -> None:
    from rldsl.train.__main__ import main

    folder = Path(told)
    counter = Counter(Path(runs), fatal, folder / "outside.txt")
    code = main(arguments)
    (folder / "count.txt").write_text(str(counter.count))
    os._exit(code)


class CountedAttempts(Attempts):
    """Attempts whose file operations are counted."""

    def run_until(self, fatal: int | None) -> int:
        """Trains until the process ends, at the latest at its n-th file operation; returns its exit code."""
        names = [word for one in self.sessions for word in ("--session", one.id)]
        arguments = [str(self.plan), "--runs", str(self.runs), *names]
        told = self.runs.with_suffix(".told")
        told.mkdir(exist_ok=True)
        process = server.Process(target=_main, args=(arguments, str(self.runs), fatal, str(told)))
        process.start()
        process.join(120)
        assert process.exitcode is not None, "it hangs"
        return process.exitcode

    @property
    def operations(self) -> int:
        """How many file operations the last attempt that was not killed had."""
        return int((self.runs.with_suffix(".told") / "count.txt").read_text())

    @property
    def written_outside(self) -> list[str]:
        """Files outside of the run directory that were opened for writing."""
        path = self.runs.with_suffix(".told") / "outside.txt"
        return path.read_text().splitlines() if path.exists() else []
