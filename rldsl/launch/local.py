"""This machine: each job a process of its own, so many at a time; a crash of one does not touch the rest."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from rldsl.launch import machine
from rldsl.launch.jobs import Job
from rldsl.launch.worker import ONE_THREAD
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
        on_gpu = any(job.resources.gpus for job in jobs)
        self.gpus: dict[Job, str] = {}
        self.all_gpus = machine.gpus() if on_gpu else []
        self.parallel = processes(launcher, on_gpu)

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
            self.gpus.pop(job, None)
        while self.waiting and len(self.running) < self.parallel:
            job = self.waiting.popleft()
            self.running[job] = _start(job, self._gpu_for(job))
        return ended

    def stop(self, jobs: Iterable[Job] | None = None) -> None:
        """Of these jobs, or of all: starts nothing more and asks what runs to checkpoint and stop."""
        self._end(signal.SIGTERM, jobs)

    def kill(self) -> None:
        """Ends what runs at once; it goes on from its last checkpoint when it is resumed."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals, jobs: Iterable[Job] | None = None) -> None:
        chosen = set(self.waiting) | set(self.running) if jobs is None else set(jobs)
        self.waiting = deque(job for job in self.waiting if job not in chosen)
        for job, process in self.running.items():
            if job in chosen and process.poll() is None:
                process.send_signal(number)

    def _gpu_for(self, job: Job) -> str | None:
        """The GPU that the fewest use."""
        if not job.resources.gpus or not self.all_gpus:
            return None
        used = Counter(self.gpus.values())
        self.gpus[job] = min(self.all_gpus, key=lambda gpu: used[gpu])
        return self.gpus[job]


def processes(launcher: Local, on_gpu: bool = False) -> int:
    """How many processes run at a time."""
    if launcher.parallel:
        return launcher.parallel
    if on_gpu and (found := machine.gpus()):
        return len(found)
    return max(1, min(machine.cores(), int(machine.memory_gb() / launcher.memory_gb)))


def _start(job: Job, gpu: str | None = None) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C reaches only the one who waits; its output is the session's log."""
    own = {"CUDA_VISIBLE_DEVICES": gpu} if gpu is not None else {}
    path = {"PYTHONPATH": os.pathsep.join(job.path)} if job.path else {}
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
            cwd=job.cwd,
            env={**ONE_THREAD, **os.environ, **path, **own},
        )
