"""A job: the command line that trains some sessions of a plan file, wherever it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rldsl.plan.existing import Standing
from rldsl.store.scrub import scrub_command


@dataclass(frozen=True)
class Job:
    """What a launcher starts for one pack: one process; its output goes to the log of the first session."""

    sessions: tuple[str, ...]
    directory: Path
    command: tuple[str, ...]


@dataclass(frozen=True)
class JobMaker:
    """Makes jobs for the sessions of one frozen plan."""

    plan: Path
    runs: Path
    file: Path | None
    origin: Sequence[str]

    def job(self, pack: Sequence[Standing]) -> Job:
        """The job of one pack."""
        return self.job_of([one.id for one in pack], self.runs / pack[0].directory)

    def job_of(self, sessions: Sequence[str], directory: Path) -> Job:
        """The job of these sessions; the file of the experiment is named, for the classes that it may define."""
        command = [sys.executable, "-m", "rldsl.train", str(self.plan), "--runs", str(self.runs)]
        command += ["--command", json.dumps(scrub_command(self.origin))]
        if self.file is not None:
            command += ["--file", str(self.file)]
        for id in sessions:
            command += ["--session", id]
        return Job(tuple(sessions), directory, tuple(command))
