"""Jobs as processes of this machine, a limited number at a time; a crash of one does not affect the others."""

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
"""Exit code of `rldsl.train` when it was asked to stop; the session can be resumed."""


class LocalRun:
    """Jobs that are waiting, running and ended; the state changes only in `poll`."""

    def __init__(self, jobs: Sequence[Job], launcher: Local, on_gpu: bool | None = None) -> None:
        """`on_gpu` is for jobs that are added later, to `waiting`."""
        self.waiting = deque(jobs)
        self.running: dict[Job, subprocess.Popen[bytes]] = {}
        self.exit_codes: dict[Job, int] = {}
        on_gpu = any(job.resources.gpus for job in jobs) if on_gpu is None else on_gpu
        self.gpus: dict[Job, str] = {}
        self.all_gpus = machine.gpus() if on_gpu else []
        self.parallel = processes(launcher, on_gpu)

    @property
    def active(self) -> bool:
        return bool(self.waiting or self.running)

    @property
    def crashed(self) -> bool:
        """Whether a job ended with an error: neither done nor asked to stop."""
        return any(code not in (0, STOPPED) for code in self.exit_codes.values())

    def poll(self) -> list[Job]:
        """Starts waiting jobs up to the limit; returns the jobs that ended since the last call."""
        ended = [job for job, process in self.running.items() if process.poll() is not None]
        for job in ended:
            self.exit_codes[job] = self.running.pop(job).returncode
            self.gpus.pop(job, None)
        while self.waiting and len(self.running) < self.parallel:
            job = self.waiting.popleft()
            self.running[job] = _start(job, self._gpu_for(job))
        return ended

    def stop(self, jobs: Iterable[Job] | None = None) -> None:
        """Asks these jobs, by default all, to checkpoint and stop; those that are waiting are dropped."""
        self._end(signal.SIGTERM, jobs)

    def kill(self) -> None:
        """Kills all running jobs; resumed sessions continue from their last checkpoint."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals, jobs: Iterable[Job] | None = None) -> None:
        chosen = set(self.waiting) | set(self.running) if jobs is None else set(jobs)
        self.waiting = deque(job for job in self.waiting if job not in chosen)
        for job, process in self.running.items():
            if job in chosen and process.poll() is None:
                process.send_signal(number)

    def _gpu_for(self, job: Job) -> str | None:
        """The GPU with the fewest jobs."""
        if not job.resources.gpus or not self.all_gpus:
            return None
        used = Counter(self.gpus.values())
        self.gpus[job] = min(self.all_gpus, key=lambda gpu: used[gpu])
        return self.gpus[job]


def processes(launcher: Local, on_gpu: bool = False) -> int:
    """How many processes run at the same time."""
    if launcher.parallel:
        return launcher.parallel
    if on_gpu and (gpus := machine.gpus()):
        return len(gpus)
    return max(1, min(machine.cores(), int(machine.memory_gb() / launcher.memory_gb)))


def exit_reason(code: int) -> str:
    """`exit 1`, or `killed by SIGKILL` for -9."""
    return f"exit {code}" if code >= 0 else f"killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """`SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _start(job: Job, gpu: str | None = None) -> subprocess.Popen[bytes]:
    """Starts a process in its own process group, which Ctrl-C does not reach; its output goes to the session's log."""
    device = {"CUDA_VISIBLE_DEVICES": gpu} if gpu is not None else {}
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
            env={**ONE_THREAD, **os.environ, **path, **device},
        )
