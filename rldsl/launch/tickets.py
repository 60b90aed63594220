"""Tickets: what was submitted where, one JSON line a job under `runs/.jobs/`, never rewritten."""

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
TICKETS = "tickets.jsonl"


@dataclass(frozen=True)
class Ticket:
    """One job as it was submitted; its launcher says where to ask for it."""

    place: str
    job_id: str
    sessions: tuple[str, ...]
    submission: str
    launcher: Mapping[str, Any] = field(hash=False)
    directories: tuple[str, ...] = ()
    """Of the sessions, below the run directory."""
    experiment: str = ""

    def folder(self, runs: Path) -> Path:
        """What its submission left behind."""
        return runs / JOBS / self.submission

    def spec(self) -> Launcher:
        """The launcher that it was submitted with."""
        return Launcher.parse(dict(self.launcher), root=f"the launcher of job {self.job_id}")


def new_submission(runs: Path) -> Path:
    """A folder of its own for what a submission leaves behind: job ids come back, folders must not."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{os.urandom(2).hex()}"
    with writing(runs):
        (runs / JOBS / name).mkdir(parents=True)
    return runs / JOBS / name


def write_tickets(runs: Path, tickets: Iterable[Ticket]) -> None:
    """Adds them to what was submitted before."""
    path = runs / JOBS / TICKETS
    with writing(runs):
        path.parent.mkdir(parents=True, exist_ok=True)
    for ticket in tickets:
        append_line(path, json.dumps(asdict(ticket)))


def read_tickets(runs: Path) -> list[Ticket]:
    """All tickets, oldest first; lines that are not such are passed over."""
    found = (_ticket(line) for line in TailReader(runs / JOBS / TICKETS).read_new())
    return [ticket for ticket in found if ticket is not None]


def newest(tickets: Sequence[Ticket]) -> dict[str, Ticket]:
    """The last ticket of each session."""
    return {id: ticket for ticket in tickets for id in ticket.sessions}


def ticket_of(job: Job, job_id: str, submission: str, launcher: Launcher, runs: Path) -> Ticket:
    """The ticket of a job that its queue has taken."""
    directories = tuple(str(one.relative_to(runs.resolve())) for one in job.directories)
    return Ticket(launcher.kind, job_id, job.sessions, submission, launcher.data(), directories, job.name)


def _ticket(line: str) -> Ticket | None:
    try:
        data = json.loads(line)
        lists = {name: tuple(data[name]) for name in ("sessions", "directories")}
        return Ticket(**{**data, **lists})
    except (ValueError, TypeError, KeyError):
        return None
