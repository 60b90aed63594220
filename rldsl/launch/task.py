"""The process that a queue runs for a job: it starts the training as a child process and handles the queue's signals.

A task is pickled by Submitit: it holds strings and paths, never a live object.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NoReturn

from rldsl.launch.local import STOPPED
from rldsl.launch.worker import ONE_THREAD
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

    poll_seconds: ClassVar[float] = 0.2
    every_seconds: ClassVar[float] = 60.0

    def __call__(self) -> int:
        """Returns 0 when done and `STOPPED` when asked to stop; otherwise this process ends as its child did."""
        signal.signal(signal.SIGTERM, self._terminate)
        self.before()
        self._child = self._start()
        code = self._wait(self._child)
        if code in STOPPING:
            time.sleep(SETTLE_SECONDS)  # a signal to the whole job may have reached the child first
        self.after(code)
        if code in STOPPING and self._terminated:
            self.evicted()
        return code if code in (0, STOPPED) else _end_as(code)

    def checkpoint(self) -> Any:
        """Called by Submitit before a time limit or preemption: the child checkpoints, and the requeued job resumes."""
        from submitit.helpers import DelayedSubmission

        self.stop_child()
        self.after(STOPPED)
        return DelayedSubmission(replace(self))

    def before(self) -> None:
        """Called once before the child starts; without a shared filesystem, downloads earlier results."""

    def every(self) -> None:
        """Called every `every_seconds` while the child runs."""

    def after(self, code: int) -> None:
        """Called once when the child has ended."""

    def evicted(self) -> None:
        """Called when the job received SIGTERM and the child has checkpointed: because of `stop`, or a preemption."""

    def stop_child(self) -> None:
        """Asks the child to checkpoint and waits until it has ended.

        This runs in a signal handler, which may have interrupted the wait for the same child: it takes no lock and
        does not reap the child.
        """
        if self._child is not None:
            try:
                os.kill(self._child.pid, signal.SIGUSR2)
                os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
            except (ProcessLookupError, ChildProcessError):
                return  # it has ended and was reaped

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        """Passes SIGTERM on to the child, which checkpoints first."""
        self._terminated = True
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)

    def _start(self) -> subprocess.Popen[bytes]:
        folder = Path(self.directory)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("ab") as log:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.cwd,
                env={**ONE_THREAD, **os.environ, **self.environment},
            )

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        due = time.monotonic() + self.every_seconds
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            time.sleep(self.poll_seconds)
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
