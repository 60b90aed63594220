"""What can be removed from a run directory: copies of the code and files of submissions that no live job needs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rldsl.launch.code import CODE
from rldsl.launch.intents import LATE_SECONDS, open_intents
from rldsl.launch.job_records import JOBS, JobRecord, newest_drivers, read_records
from rldsl.launch.queues import Queues
from rldsl.launch.submission_lock import submission_lock
from rldsl.store.errors import writing
from rldsl.store.session_dir import SessionDir

LOG_SUFFIXES = (".out", ".txt")


class Removable(NamedTuple):
    """A directory that nothing needs any more."""

    path: Path
    kind: str
    """`code`, `submission`, or `unfinished copy`."""
    bytes: int
    age: float
    """Seconds since it was made."""


def find_removable(runs: Path) -> list[Removable]:
    """The directories that no live job needs. Raises `QueueUnavailable` if a queue does not say which jobs live.

    Directories of the last hour are kept: a command may be about to use them. So are the files of the newest job of a
    session that is not done: they say why it ended.
    """
    queues = Queues(runs)
    live = _live_submissions(queues, runs)
    kept = live | {record.submission for record in queues.records.values() if not _is_done(record, runs)}
    texts = [_text(runs / JOBS / name) for name in live]
    found = [*_submissions(runs, kept), *_code(runs, texts)]
    return [one for one in found if one.age > LATE_SECONDS]


def remove(runs: Path, found: list[Removable]) -> None:
    """Removes directories, while no other command submits jobs."""
    with submission_lock(runs), writing(runs):
        for one in found:
            with suppress(FileNotFoundError):
                shutil.rmtree(one.path)


def _live_submissions(queues: Queues, runs: Path) -> set[str]:
    """The submissions with a job that waits or runs, or that are under way."""
    drivers = newest_drivers(read_records(runs)).values()
    jobs = [*queues.jobs(queues.records).values(), *map(queues.job, drivers)]
    queues.refuse_errors()
    return {job.record.submission for job in jobs if job.state.live} | {intent.name for intent in open_intents(runs)}


def _is_done(record: JobRecord, runs: Path) -> bool:
    return all(SessionDir(runs / directory).state() == "done" for directory in record.directories)


def _submissions(runs: Path, kept: set[str]) -> Iterator[Removable]:
    for path in _directories(runs / JOBS):
        if path.name not in kept:
            yield _removable(path, "submission")


def _code(runs: Path, texts: list[str]) -> Iterator[Removable]:
    for path in _directories(runs / CODE):
        if path.name.startswith("."):
            yield _removable(path, "unfinished copy")
        elif not any(path.name in text for text in texts):
            yield _removable(path, "code")


def _directories(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _text(folder: Path) -> str:
    """The scripts and commands of a submission, without the output of its jobs."""
    files = (path for path in folder.glob("*") if path.is_file() and path.suffix not in LOG_SUFFIXES)
    return "\n".join(path.read_text(errors="replace") for path in files)


def _removable(path: Path, kind: str) -> Removable:
    size = sum(file.lstat().st_size for file in path.rglob("*") if file.is_file())
    return Removable(path, kind, size, time.time() - path.stat().st_mtime)
