"""This machine as a queue: `--detach` leaves jobs to a process of their own, which starts them one after the other."""

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
from rldsl.launch.contract import Check, QueueState
from rldsl.launch.jobs import Job, Resources
from rldsl.launch.local import STOPPED, LocalRun, processes
from rldsl.launch.tickets import JOBS, Ticket
from rldsl.spec.launcher import Local
from rldsl.store.files import TailReader, append_line, replace_json
from rldsl.store.processes import host_name, is_alive, start_time

JOBS_FILE, KEEPER_FILE, EVENTS_FILE, STOP, LOG = "jobs.json", "keeper.json", "story.jsonl", "stop.jsonl", "log.txt"
POLL_SECONDS = 0.2


class LocalBackend:
    """Each submission has a keeper: a process that starts its jobs, writes down how they end, and ends with them."""

    def __init__(self, launcher: Local, runs: Path) -> None:
        self.launcher, self.runs = launcher, runs

    def check(self) -> list[Check]:
        found = machine.gpus()
        return [
            Check("processes", True, f"{processes(self.launcher)} at a time"),
            Check("machine", True, f"{machine.cores()} cores, {machine.memory_gb():.0f} GB, {len(found)} GPUs"),
        ]

    def offers(self, resources: Resources) -> list[str]:
        number = processes(self.launcher, bool(resources.gpus))
        return [f"{number} process{'es' if number > 1 else ''} at a time on this machine"]

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        replace_json(folder / JOBS_FILE, {"launcher": self.launcher.data(), "jobs": [_plain(job) for job in jobs]})
        with (folder / LOG).open("ab") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "rldsl.launch.background", str(folder.resolve())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        pid = keeper.pid
        replace_json(folder / KEEPER_FILE, {"host": host_name(), "pid": pid, "start_time": start_time(pid)})
        return [f"{folder.name}/{index}" for index, _ in enumerate(jobs)]

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        folders = {name: _states(self.runs / JOBS / name) for name in {id.partition("/")[0] for id in ids}}
        split = {id: id.partition("/") for id in ids}
        return {id: folders[name].get(index, QueueState()) for id, (name, _, index) in split.items()}

    def cancel(self, ids: Sequence[str]) -> None:
        for id in ids:
            name, _, index = id.partition("/")
            append_line(self.runs / JOBS / name / STOP, json.dumps(index))

    def fetch(self, tickets: Sequence[Ticket]) -> None:
        """All is here already."""

    def last_words(self, ticket: Ticket) -> list[str]:
        try:
            return (ticket.folder(self.runs) / LOG).read_text(errors="replace").splitlines()[-8:]
        except OSError:
            return []


def _plain(job: Job) -> dict[str, Any]:
    facts = {"sessions": job.sessions, "directory": str(job.directory), "command": job.command}
    return {**facts, "resources": job.resources, "cwd": job.cwd and str(job.cwd), "path": job.path}


def _job(data: Mapping[str, Any]) -> Job:
    return Job(
        sessions=tuple(data["sessions"]),
        directory=Path(data["directory"]),
        command=tuple(data["command"]),
        resources=Resources(*data["resources"]),
        cwd=Path(data["cwd"]) if data["cwd"] else None,
        path=tuple(data["path"]),
    )


def _states(folder: Path) -> dict[str, QueueState]:
    """Of all jobs of a submission, by their number in it."""
    try:
        count = len(json.loads((folder / JOBS_FILE).read_bytes())["jobs"])
        keeper = json.loads((folder / KEEPER_FILE).read_bytes())
    except (OSError, ValueError, KeyError):
        return {}
    kept = keeper["host"] == host_name() and is_alive(keeper["pid"], keeper["start_time"])
    otherwise = QueueState("pending") if kept else QueueState("failed", "its keeper ended")
    told = dict(map(json.loads, TailReader(folder / EVENTS_FILE).read_new()))
    found = {str(index): otherwise for index in range(count)}
    return found | {index: _state(code, kept, keeper["host"]) for index, code in told.items()}


def _state(code: int | None, kept: bool, host: str) -> QueueState:
    if code is None:
        return QueueState("running", where=host) if kept else QueueState("failed", "its keeper ended")
    if code in (0, STOPPED):
        return QueueState("done" if code == 0 else "cancelled")
    return QueueState("failed", f"exit {code}" if code > 0 else f"signal {-code}")


def keep(folder: Path) -> None:
    """What the keeper does: runs the jobs of a submission, as few or many at a time as its launcher says."""
    what = json.loads((folder / JOBS_FILE).read_bytes())
    jobs = {str(index): _job(data) for index, data in enumerate(what["jobs"])}
    numbers = {job: index for index, job in jobs.items()}
    run = LocalRun(list(jobs.values()), Local.parse(what["launcher"]))
    signal.signal(signal.SIGTERM, lambda *_: run.stop())
    stops, begun = TailReader(folder / STOP), set[Job]()
    while run.active:
        asked = [jobs[json.loads(line)] for line in stops.read_new()]
        never = [job for job in asked if job in run.waiting]
        run.stop(asked)
        for job in (*never, *run.poll()):
            append_line(folder / EVENTS_FILE, json.dumps([numbers[job], run.exit_codes.get(job, STOPPED)]))
        for job in run.running.keys() - begun:
            begun.add(job)
            append_line(folder / EVENTS_FILE, json.dumps([numbers[job], None]))
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    os.chdir("/")
    keep(Path(sys.argv[1]))
