"""A job: the command line that trains one pack of sessions of a plan file, on any backend."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from rldsl.plan.existing import PlannedSession
from rldsl.spec.experiment import Trial
from rldsl.store.scrub import scrub_command


class Resources(NamedTuple):
    """Cores and GPUs of a job. Jobs with equal resources are submitted together, on SLURM as an array."""

    cpus: int = 1
    gpus: int = 0

    @classmethod
    def of(cls, trial: Trial) -> Resources:
        """The resources that a trial needs, by its `compute` settings."""
        return cls(trial.compute.threads, int(trial.compute.device != "cpu"))


LEAST = Resources()


@dataclass(frozen=True)
class Job:
    """One process that trains one pack; its output goes to the log of the first session."""

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
    maker: JobMaker | None = field(default=None, compare=False, repr=False)
    """Makes the same job for a machine with other paths."""


@dataclass(frozen=True)
class JobMaker:
    """Makes jobs for sessions of a frozen plan; `origin` is the command of the user."""

    plan: Path
    runs: Path
    file: Path | None
    origin: Sequence[str]
    python: str = sys.executable

    def job(self, pack: Sequence[PlannedSession], until: int | None = None) -> Job:
        """The job of one pack; given a frame, it trains up to that frame and pauses."""
        row, directories = pack[0].row, tuple(self.runs / planned.directory for planned in pack)
        job = self.job_of([planned.id for planned in pack], directories[0], until)
        return replace(job, resources=Resources.of(row.trial), name=row.experiment, directories=directories)

    def job_of(self, sessions: Sequence[str], directory: Path, until: int | None = None) -> Job:
        """The job of these sessions. The experiment file is passed along for the classes that it defines."""
        command = [self.python, "-m", "rldsl.train", str(self.plan), "--runs", str(self.runs)]
        command += ["--command", json.dumps(scrub_command(self.origin))]
        if self.file is not None:
            command += ["--file", str(self.file)]
        if until is not None:
            command += ["--until", str(until)]
        for id in sessions:
            command += ["--session", id]
        return Job(tuple(sessions), directory, tuple(command), until=until, maker=self)
