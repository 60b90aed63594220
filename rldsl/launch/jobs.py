"""A job: the command line that trains some sessions of a plan file, wherever it runs."""

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
    """What the process of a job uses. Jobs that need the same may share an array."""

    cpus: int = 1
    gpus: int = 0

    @classmethod
    def of(cls, trial: Trial) -> Resources:
        """By how a trial computes."""
        return cls(trial.compute.threads, int(trial.compute.device != "cpu"))


LEAST = Resources()


@dataclass(frozen=True)
class Job:
    """What a launcher starts for one pack: one process; its output goes to the log of the first session."""

    sessions: tuple[str, ...]
    directory: Path
    command: tuple[str, ...]
    resources: Resources = LEAST
    name: str = "rldsl"
    """Of the experiment, for people who look at the queue."""
    directories: tuple[Path, ...] = ()
    """Of all its sessions, the first one included."""
    cwd: Path | None = None
    """Where it runs: in the frozen copy of the code, for a job that does not start at once."""
    path: tuple[str, ...] = ()
    """What its Python has on PYTHONPATH, in the frozen copy."""
    maker: JobMaker | None = field(default=None, compare=False, repr=False)
    """Makes the same job for a place with other paths."""


@dataclass(frozen=True)
class JobMaker:
    """Makes jobs for the sessions of one frozen plan."""

    plan: Path
    runs: Path
    file: Path | None
    origin: Sequence[str]
    python: str = sys.executable

    def job(self, pack: Sequence[PlannedSession]) -> Job:
        """The job of one pack."""
        row, directories = pack[0].row, tuple(self.runs / one.directory for one in pack)
        made = self.job_of([one.id for one in pack], directories[0])
        return replace(made, resources=Resources.of(row.trial), name=row.experiment, directories=directories)

    def job_of(self, sessions: Sequence[str], directory: Path) -> Job:
        """The job of these sessions; the file of the experiment is named, for the classes that it may define."""
        command = [self.python, "-m", "rldsl.train", str(self.plan), "--runs", str(self.runs)]
        command += ["--command", json.dumps(scrub_command(self.origin))]
        if self.file is not None:
            command += ["--file", str(self.file)]
        for id in sessions:
            command += ["--session", id]
        return Job(tuple(sessions), directory, tuple(command), maker=self)
