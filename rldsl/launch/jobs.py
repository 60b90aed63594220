"""A job: the command line that trains one pack of sessions of a plan file, on any backend."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.plan.existing import PlannedSession
from rldsl.plan.memory import process_gb
from rldsl.spec.device import gpu_number, uses_gpu
from rldsl.spec.experiment import Trial
from rldsl.store.scrub import scrub_command

LARGE_GB = 2.0
"""Memory of a process from which on its job asks for memory, even if the launcher does not say how much."""


class Resources(NamedTuple):
    """Cores, GPUs and memory of a job. Jobs with equal resources are submitted together, on SLURM as an array."""

    cpus: int = 1
    gpus: int = 0
    memory_gb: float = 0.0
    """0: not known."""

    @classmethod
    def of(cls, trial: Trial, gpu: bool, members: int = 1) -> Resources:
        """What the process of a pack needs, by its `compute` settings and whether it trains on a GPU."""
        return cls(trial.compute.threads, int(gpu), process_gb(trial, members))

    @property
    def large(self) -> bool:
        """Whether a process needs more memory than a queue gives by default."""
        return self.memory_gb >= LARGE_GB


LEAST = Resources()


@dataclass(frozen=True)
class Job:
    """One process that trains one pack; its output goes to the log of the first session.

    Or several such processes, `packs`, and one that supervises them.
    """

    sessions: tuple[str, ...]
    directory: Path
    """The directory of the first session."""
    command: tuple[str, ...]
    resources: Resources = LEAST
    name: str = "rldsl"
    """The name in the queue: that of the experiment."""
    directories: tuple[Path, ...] = ()
    """The directories of all sessions of the pack."""
    cwd: Path | None = None
    """The working directory: in the frozen copy of the code, for a job of a queue."""
    path: tuple[str, ...] = ()
    """PYTHONPATH, with directories of the project taken from the frozen copy."""
    until: int | None = None
    """The frame at which to pause; None to train to the end."""
    gpu: int | None = None
    """The number of the GPU that its sessions ask for, on this machine; None: any."""
    maker: JobMaker | None = field(default=None, compare=False, repr=False)
    """Makes the same job for a machine with other paths."""
    packs: tuple[Job, ...] = ()
    """The processes of the job, if there are several."""
    attempts: tuple[int, ...] = ()
    """How often each session had been started before: a session that failed since then is not tried again."""
    after: tuple[str, ...] = ()
    """Ids of jobs of the same queue that must have ended well before it starts."""


def joined(packs: Sequence[Job], resources: Resources) -> Job:
    """One job for several packs: `rldsl.launch.node` runs and supervises their processes."""
    first = packs[0]
    return replace(
        first,
        sessions=tuple(id for pack in packs for id in pack.sessions),
        directories=tuple(path for pack in packs for path in pack.directories),
        command=node_command(packs, resources.cpus),
        resources=resources,
        packs=tuple(packs),
    )


def node_command(packs: Sequence[Job], cpus: int) -> tuple[str, ...]:
    """The command of a job of several packs, on a machine that gives it so many cores."""
    options = (option for pack in packs for option in ("--pack", json.dumps(_pack_data(pack))))
    return (packs[0].command[0], "-m", "rldsl.launch.node", "--cpus", str(cpus), *options)


def _pack_data(pack: Job) -> dict[str, Any]:
    return {
        "command": pack.command,
        "directories": [str(path) for path in pack.directories],
        "attempts": pack.attempts,
        "until": pack.until,
        "cpus": pack.resources.cpus,
        "gpus": pack.resources.gpus,
    }


@dataclass(frozen=True)
class JobMaker:
    """Makes jobs for sessions of a frozen plan; `origin` is the command of the user."""

    plan: Path
    runs: Path
    file: Path | None
    origin: Sequence[str]
    python: str = sys.executable
    gpu: bool = False
    """Whether there are GPUs where the jobs run."""
    any_code: bool = False
    """Whether sessions that other code started are continued."""

    def job(self, pack: Sequence[PlannedSession], until: int | None = None) -> Job:
        """The job of one pack; given a frame, it trains up to that frame and pauses."""
        row, directories = pack[0].row, tuple(self.runs / planned.directory for planned in pack)
        job = self.job_of([planned.id for planned in pack], directories[0], until)
        return replace(
            job,
            resources=Resources.of(row.trial, uses_gpu(row.trial, self.gpu), len(pack)),
            name=row.experiment,
            directories=directories,
            gpu=gpu_number(row.trial.compute.device),
            attempts=tuple(planned.on_disk.attempts for planned in pack),
        )

    def job_of(self, sessions: Sequence[str], directory: Path, until: int | None = None) -> Job:
        """The job of these sessions. The experiment file is passed along for the classes that it defines."""
        command = [self.python, "-m", "rldsl.train", str(self.plan), "--runs", str(self.runs)]
        command += ["--command", json.dumps(scrub_command(self.origin))]
        if self.file is not None:
            command += ["--file", str(self.file)]
        if until is not None:
            command += ["--until", str(until)]
        if self.any_code:
            command.append("--any-code")
        for id in sessions:
            command += ["--session", id]
        return Job(tuple(sessions), directory, tuple(command), until=until, maker=self)
