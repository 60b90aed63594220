"""Whether this process is compiling, for how long, and how to end it: a compilation may take a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil  # type: ignore[import-untyped]


class CompilationInterrupted(BaseException):
    """The process was asked to stop while it was compiling. Not an `Exception`: nothing falls back to eager code."""


class CompilerActivity:
    """The compilations of this process, one at a time."""

    def __init__(self) -> None:
        self.running = False
        self._other_children: set[psutil.Process] = set()
        """Processes that were there before the compilation."""
        self.seconds = 0.0
        """Seconds of all compilations that have ended."""
        self.builds = 0
        """Libraries that this process built; others were built by another process, or are in the cache."""
        self.on_start: Callable[[], None] | None = None
        self.on_end: Callable[[float, bool], None] | None = None
        """Called when a compilation begins and, with its seconds and whether a library was built, when it ends."""

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """The block compiles."""
        self._other_children = _children()
        started, builds = time.monotonic(), self.builds
        if self.on_start is not None:
            self.on_start()
        self.running = True
        try:
            yield
        finally:
            self.running = False
            seconds = time.monotonic() - started
            self.seconds += seconds
        if self.on_end is not None:
            self.on_end(seconds, self.builds > builds)

    def forget(self) -> None:
        """Nobody is told of further compilations."""
        self.on_start = self.on_end = None

    def interrupt(self) -> None:
        """For signal handlers: ends a compilation by raising `CompilationInterrupted`; otherwise does nothing.

        The compilers that it started are killed first: once their parents have ended they cannot be found any more.
        """
        if self.running:
            _kill(_children() - self._other_children)
            raise CompilationInterrupted


activity = CompilerActivity()


def _children() -> set[psutil.Process]:
    with suppress(psutil.Error):
        return set(psutil.Process().children(recursive=True))
    return set()


def _kill(processes: set[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
