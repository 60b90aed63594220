"""A job of an array, on its node: `python -m rldsl.launch.slurm_job FOLDER START WARNING [--scratch]`.

Its batch script starts it. `START.jsonl` in the folder of the submission has a line for each job of the array that
begins at this position.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType

from rldsl.launch.backend import QueueUnavailable
from rldsl.launch.intents import is_wanted
from rldsl.launch.jobs import Job
from rldsl.launch.lives import begin_life, end_without_progress
from rldsl.launch.slurm_queue import run_command
from rldsl.launch.task import Task
from rldsl.store.errors import StoreError, writing
from rldsl.store.files import open_log, replace_text
from rldsl.store.layout import LOG
from rldsl.store.scratch import VARIABLE as SCRATCH
from rldsl.store.session_dir import SessionDir

REQUEUE_SECONDS = 60.0
"""How long to wait for SLURM to end this process after it was requeued."""
LEAST_MARGIN, MARGIN = 5.0, 0.2
"""Seconds, and share of the time between the warning and the time limit, that requeueing may take."""


@dataclass
class SlurmTask(Task):
    """A task that is requeued, and resumes, after a warning (SIGUSR2) before its time limit or a preemption."""

    directories: tuple[str, ...] = ()
    """The directories of all sessions of the job."""
    warning_seconds: float = math.inf
    """Seconds between the warning and the time limit."""
    scratch: str = ""
    """A directory on the disk of this node; empty: checkpoints are written to the run directory at once."""
    _warned: bool = field(default=False, init=False, repr=False, compare=False)

    def __call__(self) -> int:
        signal.signal(signal.SIGUSR2, self._warn)
        if self._ended_without_progress():
            return 1
        begin_life(self._paths, job_id())
        return super().__call__()

    def after(self, code: int) -> None:
        """Checkpoints are in the run directory by now; those that are not do not count."""
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def stopped(self) -> None:
        """Requeues the job unless it was cancelled, somebody stopped its session alone, or it makes no progress."""
        if not (self._warned or self._terminated) or not _is_running():
            return
        if self._killed:
            self._log(f"the checkpoint took longer than {self._seconds():.0f} seconds: it resumes from the one before")
        if self._ended_without_progress():
            sys.exit(1)
        for path in self._paths:
            SessionDir(path).journal.append("requeued", job_id=job_id(), overran=self._killed)
        try:
            run_command(["scontrol", "requeue", job_id()])
        except QueueUnavailable as error:
            self._log(f"the job could not be requeued: {error}")
            return
        time.sleep(REQUEUE_SECONDS)

    def _warn(self, number: int, frame: FrameType | None) -> None:
        self._warned = True
        self.stop_child(self._seconds())

    def _seconds(self) -> float:
        """How long a checkpoint may take: the job must be requeued before its time limit."""
        return self.warning_seconds - max(LEAST_MARGIN, MARGIN * self.warning_seconds)

    @property
    def _paths(self) -> list[Path]:
        return [Path(one) for one in self.directories]

    def _ended_without_progress(self) -> bool:
        reason = end_without_progress(self._paths, job_id())
        if reason is not None:
            self._log(reason)
        return reason is not None

    def _log(self, sentence: str) -> None:
        """Writes a line to the log of the first session."""
        with open_log(Path(self.directory or self.directories[0], LOG)) as log:
            log.write(f"rldsl: {sentence}\n".encode())


def write_jobs(jobs: Sequence[Job], folder: Path, start: int, container: str | None = None) -> None:
    """Writes the commands of an array for its jobs."""
    lines = (
        {
            "command": job.command if container is None else in_container(job, container),
            "directory": "" if job.packs else str(job.directory),
            "directories": [str(one) for one in job.directories],
            "cwd": str(job.cwd) if job.cwd else None,
        }
        for job in jobs
    )
    replace_text(_file(folder, start), "".join(f"{json.dumps(line)}\n" for line in lines))


def in_container(job: Job, image: str) -> list[str]:
    """The command of a job inside an Apptainer image, with the run directory, which has plan and code, from outside."""
    path = image if "://" in image else str(Path(image).expanduser().resolve())
    runs = [f"--bind={job.maker.runs}"] if job.maker else []
    cwd = [f"--pwd={job.cwd}"] if job.cwd else []
    gpu = ["--nv"] if job.resources.gpus else []
    return ["apptainer", "exec", *gpu, *runs, *cwd, path, "python", *job.command[1:]]


def read_task(folder: Path, start: int, index: int, warning_seconds: float = math.inf, scratch: str = "") -> SlurmTask:
    """The task of a job of an array."""
    with _file(folder, start).open() as file:
        data = json.loads(next(islice(file, index, None)))
    return SlurmTask(
        command=tuple(data["command"]),
        directory=data["directory"],
        cwd=data["cwd"],
        directories=tuple(data["directories"]),
        warning_seconds=warning_seconds,
        scratch=scratch,
        environment={SCRATCH: scratch, **_bound(scratch)} if scratch else {},
    )


def make_scratch() -> str:
    """A new private directory on the disk of this node, without what a killed life of this job has left."""
    base = Path(os.environ.get("SLURM_TMPDIR") or os.environ.get("TMPDIR") or tempfile.gettempdir())
    path = base / f"rldsl-{job_id()}"
    with suppress(OSError):
        if path.lstat().st_uid == os.getuid() and not path.is_symlink():
            shutil.rmtree(path)
    with writing(base):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:  # of somebody else
            return tempfile.mkdtemp(prefix=f"{path.name}-", dir=base)
    return str(path)


def _bound(path: str) -> dict[str, str]:
    """Makes a directory visible inside of a container."""
    binds = [os.environ.get("APPTAINER_BIND", ""), path]
    return {"APPTAINER_BIND": ",".join(filter(None, binds))}


def _file(folder: Path, start: int) -> Path:
    return folder / f"{start}.jsonl"


def job_id() -> str:
    """The id of this job, as `squeue` shows it."""
    return f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"


def _is_running() -> bool:
    """Whether SLURM has not begun to end this job; a cancelled one is completing."""
    try:
        return run_command(["squeue", "--noheader", "--format=%T", "--jobs", job_id()]).strip() == "RUNNING"
    except QueueUnavailable:
        return False


def main(folder: Path, start: int, warning_seconds: float, scratch: bool = False) -> int:
    """Runs the job of this process; one that was given up by its submitter ends at once."""
    index = int(os.environ["SLURM_ARRAY_TASK_ID"])
    if not is_wanted(folder, start + index):
        print("rldsl: this job was given up before it arrived in the queue: it does nothing")  # noqa: T201 (its log)
        return 0
    try:
        return read_task(folder, start, index, warning_seconds, make_scratch() if scratch else "")()
    except StoreError as error:
        print(f"rldsl: {error}")  # noqa: T201 (its log)
        return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), "--scratch" in sys.argv[4:]))
