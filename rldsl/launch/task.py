"""What a queue runs for a job: a light process that starts the training as its child and minds it.

A task is pickled: it holds words and paths, never a live object.
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
"""How a child ends that was asked to stop; by the signal itself if it was not ready to listen yet."""
PATIENCE = 1.0


@dataclass
class Task:
    """Runs a job's command to its end, in as many lives as its queue gives it."""

    command: tuple[str, ...]
    directory: str
    cwd: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    _child: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False, compare=False)
    _terminated: bool = field(default=False, init=False, repr=False, compare=False)

    poll_seconds: ClassVar[float] = 0.2
    every_seconds: ClassVar[float] = 60.0

    def __call__(self) -> int:
        """0 when done, `STOPPED` when it was asked to stop; any other end of the child is its own end too."""
        signal.signal(signal.SIGTERM, self._note)
        self.before()
        self._child = self._start()
        code = self._wait(self._child)
        if code in STOPPING:
            time.sleep(PATIENCE)  # a warning for all may have reached the child first
        self.after(code)
        if code in STOPPING and self._terminated:
            self.evicted()
        return code if code in (0, STOPPED) else _end_as(code)

    def checkpoint(self) -> Any:
        """Submitit calls it on a warning: the child checkpoints and ends, and its next life goes on."""
        from submitit.helpers import DelayedSubmission

        self.stop_child()
        self.after(STOPPED)
        return DelayedSubmission(replace(self))

    def before(self) -> None:
        """Once, before the child starts: a place without a shared filesystem brings here what there is."""

    def every(self) -> None:
        """About every minute while the child runs."""

    def after(self, code: int) -> None:
        """Once, when the child has ended."""

    def evicted(self) -> None:
        """The whole job was told to end, and the child has checkpointed: by `stop`, or to make room for others."""

    def stop_child(self) -> None:
        """Asks the child to checkpoint, and waits for its end.

        It runs inside a signal handler, which may have interrupted the wait for the same child: hence no lock is
        taken and the child is not reaped.
        """
        if self._child is not None:
            try:
                os.kill(self._child.pid, signal.SIGUSR2)
                os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
            except (ProcessLookupError, ChildProcessError):
                return  # it has ended, and has been reaped

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Told to end: so is the child, which checkpoints first."""
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
    """Ends this process as its child ended, by the same signal if it was one: that is what the queue writes down."""
    if code < 0 and -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(abs(code))
