"""The backend of detached runs on this machine: a supervisor process starts the jobs of a submission in turn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rldsl.launch import machine
from rldsl.launch.backend import Check, QueueState
from rldsl.launch.job_records import JOBS, JobRecord
from rldsl.launch.jobs import Job, Resources
from rldsl.launch.local import STOPPED, LocalRun, exit_reason, processes
from rldsl.spec.launcher import Local
from rldsl.store.files import TailReader, append_line, replace_json
from rldsl.store.processes import host_name, is_alive, start_time

JOBS_FILE = "jobs.json"
"""The jobs of a submission and their launcher."""
SUPERVISOR_FILE = "keeper.json"
"""Host, process id and start time of the supervisor."""
EVENTS_FILE = "story.jsonl"
"""`[index, null]` when a job starts and `[index, exit code]` when it ends."""
CANCEL_FILE = "stop.jsonl"
"""Indices of jobs to cancel."""
LOG_FILE = "log.txt"
POLL_SECONDS = 0.2
LAST_LINES = 8
SUPERVISOR_ENDED = QueueState("failed", "the process that supervised it ended")


class LocalBackend:
    """Each submission has a supervisor: a process that runs its jobs, records how they end, and ends with the last."""

    def __init__(self, launcher: Local, runs: Path) -> None:
        self.launcher, self.runs = launcher, runs

    def check(self) -> list[Check]:
        gpus = machine.gpus()
        return [
            Check("processes", True, f"{processes(self.launcher)} at a time"),
            Check("machine", True, f"{machine.cores()} cores, {machine.memory_gb():.0f} GB, {len(gpus)} GPUs"),
        ]

    def offers(self, resources: Resources) -> list[str]:
        number = processes(self.launcher, bool(resources.gpus))
        return [f"{number} process{'es' if number > 1 else ''} at a time on this machine"]

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        replace_json(folder / JOBS_FILE, {"launcher": self.launcher.data(), "jobs": [_job_data(job) for job in jobs]})
        with (folder / LOG_FILE).open("ab") as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "rldsl.launch.local_backend", str(folder.resolve())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pid = supervisor.pid
        replace_json(folder / SUPERVISOR_FILE, {"host": host_name(), "pid": pid, "start_time": start_time(pid)})
        return [f"{folder.name}/{index}" for index, _ in enumerate(jobs)]

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        submissions = {name: _states(self.runs / JOBS / name) for name in {id.partition("/")[0] for id in ids}}
        split = {id: id.partition("/") for id in ids}
        return {id: submissions[name].get(index, QueueState()) for id, (name, _, index) in split.items()}

    def cancel(self, ids: Sequence[str]) -> None:
        for id in ids:
            name, _, index = id.partition("/")
            append_line(self.runs / JOBS / name / CANCEL_FILE, json.dumps(index))

    def fetch(self, records: Sequence[JobRecord]) -> None:
        """Nothing to do: jobs write to this filesystem."""

    def last_lines(self, record: JobRecord) -> list[str]:
        try:
            return (record.folder(self.runs) / LOG_FILE).read_text(errors="replace").splitlines()[-LAST_LINES:]
        except OSError:
            return []


def _job_data(job: Job) -> dict[str, Any]:
    data = {"sessions": job.sessions, "directory": str(job.directory), "command": job.command}
    return {**data, "resources": job.resources, "cwd": job.cwd and str(job.cwd), "path": job.path}


def _parse_job(data: Mapping[str, Any]) -> Job:
    return Job(
        sessions=tuple(data["sessions"]),
        directory=Path(data["directory"]),
        command=tuple(data["command"]),
        resources=Resources(*data["resources"]),
        cwd=Path(data["cwd"]) if data["cwd"] else None,
        path=tuple(data["path"]),
    )


def _states(folder: Path) -> dict[str, QueueState]:
    """The states of all jobs of a submission, by their index."""
    try:
        count = len(json.loads((folder / JOBS_FILE).read_bytes())["jobs"])
        supervisor = json.loads((folder / SUPERVISOR_FILE).read_bytes())
    except (OSError, ValueError, KeyError):
        return {}
    alive = supervisor["host"] == host_name() and is_alive(supervisor["pid"], supervisor["start_time"])
    events = dict(map(json.loads, TailReader(folder / EVENTS_FILE).read_new()))
    states = {str(index): QueueState("pending") if alive else SUPERVISOR_ENDED for index in range(count)}
    return states | {index: _state(code, alive, supervisor["host"]) for index, code in events.items()}


def _state(code: int | None, alive: bool, host: str) -> QueueState:
    """The state of a job that has started, by its exit code; None while it runs."""
    if code is None:
        return QueueState("running", where=host) if alive else SUPERVISOR_ENDED
    if code in (0, STOPPED):
        return QueueState("done" if code == 0 else "cancelled")
    return QueueState("failed", exit_reason(code))


def supervise(folder: Path) -> None:
    """The supervisor: runs the jobs of a submission, as many at the same time as the launcher allows."""
    submission = json.loads((folder / JOBS_FILE).read_bytes())
    jobs = {str(index): _parse_job(data) for index, data in enumerate(submission["jobs"])}
    indices = {job: index for index, job in jobs.items()}
    run = LocalRun(list(jobs.values()), Local.parse(submission["launcher"]))
    signal.signal(signal.SIGTERM, lambda *_: run.stop())
    requests, started = TailReader(folder / CANCEL_FILE), set[Job]()
    while run.active:
        cancelled = [jobs[json.loads(line)] for line in requests.read_new()]
        never_started = [job for job in cancelled if job in run.waiting]
        run.stop(cancelled)
        for job in (*never_started, *run.poll()):
            append_line(folder / EVENTS_FILE, json.dumps([indices[job], run.exit_codes.get(job, STOPPED)]))
        for job in run.running.keys() - started:
            started.add(job)
            append_line(folder / EVENTS_FILE, json.dumps([indices[job], None]))
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    os.chdir("/")
    supervise(Path(sys.argv[1]))
