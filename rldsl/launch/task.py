"""The process that a queue runs for a job: it starts the training as a child process and handles the queue's signals.

A task holds strings and paths, never a live object.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, ClassVar, NoReturn

from rldsl.launch.process_end import STOPPED, end_reason, journal_crash
from rldsl.launch.worker import ONE_THREAD
from rldsl.store.files import open_log
from rldsl.store.layout import LOG

STOPPING = (STOPPED, -signal.SIGTERM, -signal.SIGUSR2)
"""Exit codes of a child that was asked to stop; a signal if its handlers were not installed yet."""
SETTLE_SECONDS = 1.0


@dataclass
class Task:
    """Runs a job's command until it ends; the queue may interrupt it and start it again."""

    command: tuple[str, ...]
    directory: str
    cwd: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    _child: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False, compare=False)
    _terminated: bool = field(default=False, init=False, repr=False, compare=False)
    _deadline: float = field(default=math.inf, init=False, repr=False, compare=False)
    _killed: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether the child did not end before the deadline."""

    poll_seconds: ClassVar[float] = 0.2
    every_seconds: ClassVar[float] = 60.0

    def __call__(self) -> int:
        """Returns 0 when done and `STOPPED` when asked to stop; otherwise this process ends as its child did."""
        signal.signal(signal.SIGTERM, self._terminate)
        self.before()
        self._child = self._start()
        code = self._wait(self._child)
        if code not in STOPPING:
            reason = "killed: it had not ended in time" if self._killed else end_reason(code)
            journal_crash([Path(self.directory)], self._child.pid, code, reason)
        if code in STOPPING:
            time.sleep(SETTLE_SECONDS)  # a signal to the whole job may have reached the child first
        self.after(code)
        if code in STOPPING or self._killed:
            self.stopped()
        return code if code in (0, STOPPED) else _end_as(code)

    def before(self) -> None:
        """Called once before the child starts; without a shared filesystem, downloads earlier results."""

    def every(self) -> None:
        """Called every `every_seconds` while the child runs."""

    def after(self, code: int) -> None:
        """Called once when the child has ended."""

    def stopped(self) -> None:
        """Called when the child was asked to stop and has ended: by `stop`, a time limit or a preemption."""

    def stop_child(self, seconds: float = math.inf) -> None:
        """Asks the child to checkpoint and end; after that many seconds it is killed, and resumes from its last one."""
        self._deadline = time.monotonic() + seconds
        self._signal_child(signal.SIGUSR2)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        """Passes SIGTERM on to the child, which checkpoints first."""
        self._terminated = True
        self._signal_child(signal.SIGTERM)

    def _signal_child(self, number: signal.Signals) -> None:
        """Does not reap the child: this runs in signal handlers, which may have interrupted the wait for it."""
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, number)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._open_log() as log:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.cwd,
                env={**ONE_THREAD, **os.environ, **self.environment},
            )

    def _open_log(self) -> AbstractContextManager[IO[bytes] | None]:
        """The log of the first session; None for several packs, whose processes have their own logs."""
        if not self.directory:
            return nullcontext()
        folder = Path(self.directory)
        folder.mkdir(parents=True, exist_ok=True)
        return open_log(folder / LOG)

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        due = time.monotonic() + self.every_seconds
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            time.sleep(self.poll_seconds)
            if time.monotonic() >= self._deadline and not self._killed:
                self._killed = True
                self._signal_child(signal.SIGKILL)
            if time.monotonic() >= due:
                self.every()
                due = time.monotonic() + self.every_seconds
        return child.wait()


def _end_as(code: int) -> NoReturn:
    """Ends this process as its child ended, by the same signal if there was one, so that the queue records it."""
    if code < 0 and -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(abs(code))
