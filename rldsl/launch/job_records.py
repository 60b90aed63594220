"""Job records: which jobs were submitted to which backend, one JSON line per job under `runs/.jobs/`, append-only."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rldsl.launch.jobs import Job
from rldsl.spec.launcher import Launcher
from rldsl.store.errors import writing
from rldsl.store.files import TailReader, append_line

JOBS = ".jobs"
RECORDS_FILE = "tickets.jsonl"


@dataclass(frozen=True)
class JobRecord:
    """A job as it was submitted, with the launcher that its backend is constructed from."""

    backend: str
    """The kind of the launcher."""
    job_id: str
    sessions: tuple[str, ...]
    submission: str
    launcher: Mapping[str, Any] = field(hash=False)
    directories: tuple[str, ...] = ()
    """The directories of the sessions, relative to the run directory."""
    experiment: str = ""
    until: int | None = None
    """The frame at which its sessions pause; None: they train to the end."""
    search: str = ""
    """The directory of the search, relative to the run directory, if the job is its driver."""

    def folder(self, runs: Path) -> Path:
        """The directory with the scripts and logs of its submission."""
        return runs / JOBS / self.submission

    def spec(self) -> Launcher:
        """The launcher that it was submitted with."""
        return Launcher.parse(dict(self.launcher), root=f"the launcher of job {self.job_id}")


def new_submission(runs: Path) -> Path:
    """A new directory for the files of a submission. Queues may reuse job ids; these names are unique."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{os.urandom(2).hex()}"
    with writing(runs):
        (runs / JOBS / name).mkdir(parents=True)
    return runs / JOBS / name


def write_records(runs: Path, records: Iterable[JobRecord]) -> None:
    """Appends records to those of earlier submissions."""
    path = runs / JOBS / RECORDS_FILE
    with writing(runs):
        path.parent.mkdir(parents=True, exist_ok=True)
    for record in records:
        append_line(path, json.dumps(asdict(record)))


def read_records(runs: Path) -> list[JobRecord]:
    """All records, oldest first; lines that cannot be parsed are skipped."""
    parsed = (_parse(line) for line in TailReader(runs / JOBS / RECORDS_FILE).read_new())
    return [record for record in parsed if record is not None]


def newest_records(records: Sequence[JobRecord]) -> dict[str, JobRecord]:
    """The last record of each session."""
    return {id: record for record in records for id in record.sessions}


def newest_drivers(records: Sequence[JobRecord]) -> dict[str, JobRecord]:
    """The last record of the driver of each search."""
    return {record.search: record for record in records if record.search}


def record_of(job: Job, job_id: str, submission: str, launcher: Launcher, runs: Path) -> JobRecord:
    """The record of a job that its queue has accepted."""
    directories = tuple(str(path.relative_to(runs.resolve())) for path in job.directories)
    return JobRecord(launcher.kind, job_id, job.sessions, submission, launcher.data(), directories, job.name, job.until)


def _parse(line: str) -> JobRecord | None:
    try:
        data = json.loads(line)
        if "place" in data:  # the name of `backend` in records of version 0.1
            data["backend"] = data.pop("place")
        lists = {name: tuple(data[name]) for name in ("sessions", "directories")}
        return JobRecord(**{**data, **lists})
    except (ValueError, TypeError, KeyError):
        return None
