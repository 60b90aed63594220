"""Job records: which jobs were submitted to which backend, one JSON line per job under `runs/.jobs/`, append-only."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import SkipValidation, TypeAdapter

from rldsl.launch.jobs import Job
from rldsl.spec.json_text import parse_object
from rldsl.spec.launcher import Launcher
from rldsl.store.errors import writing
from rldsl.store.files import TailReader, append_lines

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
    launcher: Annotated[Mapping[str, Any], SkipValidation] = field(hash=False)
    directories: tuple[str, ...] = ()
    """The directories of the sessions, relative to the run directory."""
    experiment: str = ""
    until: int | None = None
    """The frame at which its sessions pause; None: they train to the end."""
    search: str = ""
    """The directory of the search, relative to the run directory, if the job is its driver."""
    stopped: bool = False
    """Whether `stop` has asked its queue to cancel it."""

    def folder(self, runs: Path) -> Path:
        """The directory with the scripts and logs of its submission."""
        return runs / JOBS / self.submission

    def spec(self) -> Launcher:
        """The launcher that it was submitted with."""
        return Launcher.parse(dict(self.launcher), root=f"the launcher of job {self.job_id}")


FIELDS = tuple(JobRecord.__dataclass_fields__)


def new_submission(runs: Path) -> Path:
    """A new directory for the files of a submission. Queues may reuse job ids; these names are unique."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{os.urandom(2).hex()}"
    with writing(runs):
        (runs / JOBS / name).mkdir(0o700, parents=True)  # for scripts and commands
    return runs / JOBS / name


def write_records(runs: Path, records: Iterable[JobRecord]) -> None:
    """Appends records to those of earlier submissions: all of them or, if that fails, none."""
    _append(runs, [json.dumps({name: getattr(record, name) for name in FIELDS}) for record in records])


def record_stop(runs: Path, records: Iterable[JobRecord]) -> None:
    """Records that these jobs are to be cancelled, before their queue is asked to do so."""
    _append(runs, [json.dumps({"stopped": [(record.submission, record.job_id) for record in records]})])


def read_records(runs: Path) -> list[JobRecord]:
    """All records, oldest first; lines that cannot be parsed are skipped."""
    records: list[JobRecord] = []
    stopped: set[tuple[str, str]] = set()
    launchers: dict[str, dict[str, Any]] = {}
    for line in TailReader(runs / JOBS / RECORDS_FILE).read_new():
        parsed = _parse(line, launchers)
        if isinstance(parsed, JobRecord):
            records.append(parsed)
        else:
            stopped |= parsed
    return [_with_stop(record, stopped) for record in records] if stopped else records


def _with_stop(record: JobRecord, stopped: set[tuple[str, str]]) -> JobRecord:
    return replace(record, stopped=True) if (record.submission, record.job_id) in stopped else record


def _append(runs: Path, lines: Sequence[str]) -> None:
    path = runs / JOBS / RECORDS_FILE
    with writing(runs):
        path.parent.mkdir(parents=True, exist_ok=True)
    if lines:
        append_lines(path, lines, durable=True)


def newest_records(records: Sequence[JobRecord]) -> dict[str, JobRecord]:
    """The last record of each session."""
    return {id: record for record in records for id in record.sessions}


def newest_drivers(records: Sequence[JobRecord]) -> dict[str, JobRecord]:
    """The last record of the driver of each search."""
    return {record.search: record for record in records if record.search}


def record_of(job: Job, job_id: str, submission: str, launcher: Launcher, runs: Path) -> JobRecord:
    """The record of a job; its id is empty until its queue has accepted it."""
    directories = tuple(str(path.relative_to(runs.resolve())) for path in job.directories)
    return JobRecord(launcher.kind, job_id, job.sessions, submission, launcher.data(), directories, job.name, job.until)


def _parse(line: str, launchers: dict[str, dict[str, Any]]) -> JobRecord | set[tuple[str, str]]:
    """A record, or the jobs that were stopped; empty for other lines. Equal `launchers` are kept once."""
    try:
        data = parse_object(line)
        if isinstance(data.get("stopped"), list):
            return {(str(submission), str(id)) for submission, id in data["stopped"]}
        if "place" in data:  # the name of `backend` in records of version 0.1
            data["backend"] = data.pop("place")
        if not isinstance(data.get("launcher"), dict):
            return set()
        data["launcher"] = launchers.setdefault(repr(data["launcher"]), data["launcher"])
        record = _RECORD.validate_python(data)
    except (ValueError, TypeError):
        return set()
    return record if all(map(_stays_inside, (record.submission, record.search, *record.directories))) else set()


_RECORD = TypeAdapter(JobRecord)


def _stays_inside(path: str) -> bool:
    """Whether a path of a record is below the run directory."""
    return not path.startswith("/") and ".." not in path.split("/")
