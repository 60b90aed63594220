"""This machine: each job a process of its own, so many at a time; a crash of one does not touch the rest."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Sequence

from rldsl.launch.jobs import Job
from rldsl.spec.launcher import Local
from rldsl.store.errors import writing
from rldsl.store.layout import LOG

STOPPED = 3
"""Exit code of a job that was asked to stop and can be resumed, as `rldsl.train` gives it."""


class LocalRun:
    """Jobs waiting, running and ended; nothing moves but by `poll`."""

    def __init__(self, jobs: Sequence[Job], launcher: Local) -> None:
        self.waiting = deque(jobs)
        self.running: dict[Job, subprocess.Popen[bytes]] = {}
        self.exit_codes: dict[Job, int] = {}
        self.parallel = processes(launcher)

    @property
    def active(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def crashed(self) -> bool:
        """Whether a job ended as it should not: neither done nor asked to stop."""
        return any(code not in (0, STOPPED) for code in self.exit_codes.values())

    def poll(self) -> list[Job]:
        """Starts what there is room for; returns the jobs that ended since the last call."""
        ended = [job for job, process in self.running.items() if process.poll() is not None]
        for job in ended:
            self.exit_codes[job] = self.running.pop(job).returncode
        while self.waiting and len(self.running) < self.parallel:
            job = self.waiting.popleft()
            self.running[job] = _start(job)
        return ended

    def stop(self) -> None:
        """Starts nothing more and asks what runs to checkpoint and stop."""
        self.waiting.clear()
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends what runs at once; it goes on from its last checkpoint when it is resumed."""
        self.waiting.clear()
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        for process in self.running.values():
            if process.poll() is None:
                process.send_signal(number)


def processes(launcher: Local) -> int:
    """How many processes run at a time."""
    return launcher.parallel or os.cpu_count() or 1


def _start(job: Job) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C reaches only the one who waits; its output is the session's log."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**threads, **os.environ}
    with writing(job.directory):
        job.directory.mkdir(parents=True, exist_ok=True)
        log = (job.directory / LOG).open("ab")
    with log:
        return subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
