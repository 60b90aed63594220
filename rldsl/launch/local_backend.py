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
from rldsl.launch.intents import Intent, is_wanted
from rldsl.launch.job_records import JOBS, JobRecord
from rldsl.launch.jobs import Job, Resources
from rldsl.launch.local import LocalRun, processes
from rldsl.launch.process_end import STOPPED, end_reason
from rldsl.spec.json_text import parse_json, parse_object
from rldsl.spec.launcher import Local
from rldsl.store.files import TailReader, append_line, open_log, replace_json
from rldsl.store.processes import ProcessId

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

    dependencies = True

    def __init__(self, launcher: Local, runs: Path) -> None:
        self.launcher, self.runs = launcher, runs

    def check(self) -> list[Check]:
        gpus = machine.gpus()
        return [
            Check("processes", True, f"{processes(self.launcher)} at a time"),
            Check("machine", True, f"{machine.cores()} cores, {machine.memory_gb():.0f} GB, {len(gpus)} GPUs"),
        ]

    def offers(self, resources: Resources) -> list[str]:
        number = processes(self.launcher, [resources])
        return [f"{number} process{'es' if number > 1 else ''} at a time on this machine"]

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        replace_json(folder / JOBS_FILE, {"launcher": self.launcher.data(), "jobs": [_job_data(job) for job in jobs]})
        with open_log(folder / LOG_FILE) as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "rldsl.launch.local_backend", str(folder.resolve())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _record_supervisor(folder, supervisor.pid)
        return [f"{folder.name}/{index}" for index, _ in enumerate(jobs)]

    def find(self, intent: Intent) -> dict[int, str]:
        """All jobs of a submission whose supervisor has been started."""
        started = (intent.folder / SUPERVISOR_FILE).exists()
        return {index: f"{intent.name}/{index}" for index, _ in enumerate(intent.jobs)} if started else {}

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


def _record_supervisor(folder: Path, pid: int) -> None:
    process = ProcessId.of(pid)
    replace_json(folder / SUPERVISOR_FILE, process.data() if process else {})


def _job_data(job: Job) -> dict[str, Any]:
    data = {"sessions": job.sessions, "directory": str(job.directory), "command": job.command}
    data |= {"directories": [str(one) for one in job.directories], "after": job.after}
    return {**data, "resources": job.resources, "cwd": job.cwd and str(job.cwd), "path": job.path, "gpu": job.gpu}


def _parse_job(data: Mapping[str, Any]) -> Job:
    return Job(
        sessions=tuple(data["sessions"]),
        directory=Path(data["directory"]),
        directories=tuple(map(Path, data.get("directories", ()))),
        command=tuple(data["command"]),
        resources=Resources(*data["resources"]),
        cwd=Path(data["cwd"]) if data["cwd"] else None,
        path=tuple(data["path"]),
        gpu=data.get("gpu"),
        after=tuple(data.get("after", ())),
    )


def _states(folder: Path) -> dict[str, QueueState]:
    """The states of all jobs of a submission, by their index."""
    try:
        count = len(parse_object((folder / JOBS_FILE).read_bytes())["jobs"])
        supervisor = parse_object((folder / SUPERVISOR_FILE).read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    process = ProcessId.parse(supervisor)
    alive, host = process is not None and process.alive, process.host if process else ""
    events = dict(filter(None, map(_parse_event, TailReader(folder / EVENTS_FILE).read_new())))
    states = {str(index): QueueState("pending") if alive else SUPERVISOR_ENDED for index in range(count)}
    return states | {index: _state(code, alive, host) for index, code in events.items()}


def _parse_event(line: str) -> tuple[str, int | None] | None:
    """An index and an exit code; None for a line that is no event."""
    try:
        index, code = parse_json(line)
    except (ValueError, TypeError):
        return None
    return (index, code) if isinstance(index, str) and (code is None or type(code) is int) else None


def _state(code: int | None, alive: bool, host: str) -> QueueState:
    """The state of a job that has started, by its exit code; None while it runs."""
    if code is None:
        return QueueState("running", where=host) if alive else SUPERVISOR_ENDED
    if code in (0, STOPPED):
        return QueueState("done" if code == 0 else "cancelled")
    return QueueState("failed", end_reason(code))


def supervise(folder: Path) -> None:
    """The supervisor: runs the jobs of a submission, as many at the same time as the launcher allows."""
    _record_supervisor(folder, os.getpid())  # whoever started it may have been killed
    if not is_wanted(folder, 0):
        return
    submission = json.loads((folder / JOBS_FILE).read_bytes())
    jobs = {str(index): _parse_job(data) for index, data in enumerate(submission["jobs"])}
    indices = {job: index for index, job in jobs.items()}
    held = [job for job in jobs.values() if job.after]
    launcher = Local.parse(submission["launcher"])
    run = LocalRun([job for job in jobs.values() if job not in held], launcher, [job.resources for job in held])
    signal.signal(signal.SIGTERM, lambda *_: run.stop())
    requests, started = TailReader(folder / CANCEL_FILE), set[Job]()
    while run.active or (held and not run.stopped):
        cancelled = [jobs[index] for line in requests.read_new() if (index := line.strip('"')) in jobs]
        never_started = [job for job in cancelled if job in run.waiting or job in held]
        held = [job for job in held if job not in cancelled]
        never_started += _release(held, run, LocalBackend(launcher, folder.parent.parent))
        run.stop(cancelled)
        for job in (*never_started, *run.poll()):
            append_line(folder / EVENTS_FILE, json.dumps([indices[job], run.exit_codes.get(job, STOPPED)]))
        for job in run.running.keys() - started:
            started.add(job)
            append_line(folder / EVENTS_FILE, json.dumps([indices[job], None]))
        time.sleep(POLL_SECONDS)


def _release(held: list[Job], run: LocalRun, backend: LocalBackend) -> list[Job]:
    """Lets jobs start that waited for others which are done; returns those that never will, because one is not."""
    given_up: list[Job] = []
    for after in {job.after for job in held}:
        states = {state.state for state in backend.states(after).values()}
        if states <= {"done", "pending", "running"} and states != {"done"}:
            continue
        chosen = [job for job in held if job.after == after]
        (run.waiting if states == {"done"} else given_up).extend(chosen)
        held[:] = [job for job in held if job.after != after]
    return given_up


if __name__ == "__main__":
    os.chdir("/")
    supervise(Path(sys.argv[1]))
