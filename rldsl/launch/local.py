"""Jobs as processes of this machine, a limited number at a time; a crash of one does not affect the others."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from rldsl.launch import machine
from rldsl.launch.jobs import LEAST, Job, Resources
from rldsl.launch.process_end import STOPPED, end_reason, journal_crash, oom_kills
from rldsl.launch.worker import ONE_THREAD
from rldsl.spec.launcher import Local
from rldsl.store.errors import writing
from rldsl.store.files import open_log
from rldsl.store.layout import LOG


class LocalRun:
    """Jobs that are waiting, running and ended; the state changes only in `poll`."""

    def __init__(self, jobs: Sequence[Job], launcher: Local, later: Sequence[Resources] = ()) -> None:
        """`later` are the resources of jobs that are added later, to `waiting`."""
        self.waiting = deque(jobs)
        self.running: dict[Job, subprocess.Popen[bytes]] = {}
        self.exit_codes: dict[Job, int] = {}
        self.reasons: dict[Job, str] = {}
        """How jobs ended, in words."""
        self.killed = False
        """Whether `kill` was called."""
        self.stopped = False
        """Whether all jobs were asked to stop."""
        self._oom_kills: dict[Job, int] = {}
        needs = [*(job.resources for job in jobs), *later]
        self.gpus: dict[Job, str] = {}
        self.all_gpus = machine.gpus() if any(each.gpus for each in needs) else []
        self.parallel = processes(launcher, needs)
        self.gpu_processes = launcher.parallel or len(self.all_gpus) * launcher.per_gpu or self.parallel
        """How many of them may use a GPU."""

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
            self._end_of(job, self.running.pop(job))
            self.gpus.pop(job, None)
        while len(self.running) < self.parallel and (next_job := self._next()) is not None:
            self._oom_kills[next_job] = oom_kills()
            self.running[next_job] = _start(next_job, self._gpu_for(next_job))
        return ended

    def _next(self) -> Job | None:
        """Takes the first waiting job that can be started: if the GPUs are busy, one that needs none."""
        free = len(self.gpus) < self.gpu_processes
        job = next((job for job in self.waiting if free or not job.resources.gpus), None)
        if job is not None:
            self.waiting.remove(job)
        return job

    def _end_of(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        """Notes how a process ended, also in the journals of its sessions if it could not do so itself."""
        code = self.exit_codes[job] = process.returncode
        reason = "killed on request" if self.killed else end_reason(code, self._oom_kills.pop(job, None))
        self.reasons[job] = reason
        journal_crash(job.directories or (job.directory,), process.pid, code, reason)

    def stop(self, jobs: Iterable[Job] | None = None) -> None:
        """Asks these jobs, by default all, to checkpoint and stop; those that are waiting are dropped."""
        self.stopped |= jobs is None
        self._end(signal.SIGTERM, jobs)

    def kill(self) -> None:
        """Kills all running jobs; resumed sessions continue from their last checkpoint."""
        self.killed = True
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals, jobs: Iterable[Job] | None = None) -> None:
        chosen = set(self.waiting) | set(self.running) if jobs is None else set(jobs)
        self.waiting = deque(job for job in self.waiting if job not in chosen)
        for job, process in self.running.items():
            if job in chosen and process.poll() is None:
                process.send_signal(number)

    def _gpu_for(self, job: Job) -> str | None:
        """The GPU that the job asks for by its number, otherwise the one with the fewest jobs."""
        if not job.resources.gpus or not self.all_gpus:
            return None
        used = Counter(self.gpus.values())
        chosen = self.all_gpus[job.gpu :][:1] if job.gpu is not None else self.all_gpus
        self.gpus[job] = min(chosen or self.all_gpus, key=lambda gpu: used[gpu])
        return self.gpus[job]


def processes(launcher: Local, needs: Iterable[Resources] = ()) -> int:
    """How many processes run at the same time, if these are the resources that each of them needs."""
    if launcher.parallel:
        return launcher.parallel
    wanted = set(needs) or {LEAST}
    on_gpu = len(machine.gpus()) * launcher.per_gpu if any(each.gpus for each in wanted) else 0
    on_cpu = [each for each in wanted if not each.gpus] if on_gpu else list(wanted)
    return max(on_gpu, _fitting(on_cpu, launcher) if on_cpu else 0, 1)


def _fitting(needs: Sequence[Resources], launcher: Local) -> int:
    """How many processes fit on the cores and into the memory of this machine."""
    memory = launcher.memory_gb or max(1.0, *(each.memory_gb for each in needs))
    return min(machine.cores() // max(each.cpus for each in needs), int(machine.memory_gb() / memory))


def _start(job: Job, gpu: str | None = None) -> subprocess.Popen[bytes]:
    """Starts a process in its own process group, which Ctrl-C does not reach; its output goes to the session's log."""
    device = {"CUDA_VISIBLE_DEVICES": gpu} if gpu is not None else {}
    path = {"PYTHONPATH": os.pathsep.join(job.path)} if job.path else {}
    with writing(job.directory):
        job.directory.mkdir(parents=True, exist_ok=True)
    with open_log(job.directory / LOG) as log:
        return subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=job.cwd,
            env={**ONE_THREAD, **os.environ, **path, **device},
        )
