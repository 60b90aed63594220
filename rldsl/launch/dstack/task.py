"""A job on a machine of dstack: pulls its sessions from the repository of results first, and pushes them regularly.

The machine may disappear at any moment.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from rldsl.hub.live import LiveStore
from rldsl.hub.retry import HubError
from rldsl.hub.sync import Sync
from rldsl.launch.code import PROJECT
from rldsl.launch.dstack.configuration import CODE, FOLDER, JOBS, PLAN
from rldsl.launch.jobs import Job, JobMaker, Resources, node_command
from rldsl.launch.process_end import STOPPED
from rldsl.launch.task import Task
from rldsl.store.files import TailReader
from rldsl.store.layout import LOG
from rldsl.store.session_dir import SessionDir

MARGIN = 600.0
"""Seconds before the time limit at which a job checkpoints and ends, to be retried; at most a tenth of the limit."""


@dataclass(frozen=True)
class HostPack:
    """A process of a task of several packs: the number of its sessions, and what it needs."""

    sessions: int
    attempts: tuple[int, ...]
    resources: Resources


@dataclass
class HostTask(Task):
    """A task with relative paths: `directories` below the run directory, all others below the copy of the code."""

    command: tuple[str, ...] = ()
    directory: str = ""
    sessions: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    file: str | None = None
    folder: str = PROJECT
    path: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    until: int | None = None
    packs: tuple[HostPack, ...] = ()
    """The processes, if there are several; `sessions` and `directories` are those of all of them."""
    cpus: int = 1
    results: str = ""
    seconds: float = 86400.0
    push_seconds: float = 600.0
    retried: bool = True
    """Whether dstack retries a run that ends with an error."""
    _sessions: list[SessionDir] = field(default_factory=list, init=False, repr=False, compare=False)
    _sync: Sync | None = field(default=None, init=False, repr=False, compare=False)
    _logs: list[TailReader] = field(default_factory=list, init=False, repr=False, compare=False)
    _pushed: float = field(default=0.0, init=False, repr=False, compare=False)

    every_seconds: ClassVar[float] = 1.0

    def __call__(self) -> int:
        """Runs the job. A stopped one ends with an error, so that dstack retries it.

        One whose sessions have failed does not: it would fail again.
        """
        self._resolve_paths(Path.cwd())
        limit = threading.Timer(self.seconds - min(MARGIN, self.seconds / 10), self._time_is_up)
        limit.daemon = True
        limit.start()
        try:
            code = super().__call__()
        except SystemExit as end:
            if self.retried and self._ended():
                return int(end.code or 1)
            raise
        finally:
            limit.cancel()
        if code == STOPPED:
            sys.exit(STOPPED)
        return code

    def before(self) -> None:
        signal.signal(signal.SIGINT, self._terminate)  # the first signal that dstack sends to a run that must end
        if self._sync is not None:
            self._sync.repository.create()
            pulled = self._sync.pull()
            _log(f"rldsl: {len(pulled)} of {len(self.directories)} sessions resume from {self.results}")
        for log in self._logs:
            log.read_new()
        self._pushed = time.monotonic()

    def every(self) -> None:
        self._copy_log()
        if self._sync is not None and time.monotonic() - self._pushed >= self.push_seconds:
            try:
                self._sync.push()
            except HubError as error:
                _log(f"rldsl: {error}; the next upload tries again")
            self._pushed = time.monotonic()

    def after(self, code: int) -> None:
        self._copy_log()
        if self._sync is not None:
            self._sync.push()

    def _resolve_paths(self, here: Path) -> None:
        """Makes the command, now that the paths on this machine are known."""
        code = here / FOLDER / CODE
        runs = Path(self.results) if self.results.startswith("/") else here / "runs"
        if not self.results.startswith("/"):
            self._sync = Sync(LiveStore(self.results), runs, self.directories)
        file = code / self.file if self.file else None
        maker = JobMaker(here / FOLDER / JOBS / PLAN, runs, file, self.origin, any_code=True)
        jobs = self._jobs(maker)
        self.command = jobs[0].command if len(jobs) == 1 else node_command(jobs, self.cpus)
        self.directory = str(jobs[0].directory) if len(jobs) == 1 else ""
        self.cwd = str(code / self.folder)
        self._logs = [TailReader(job.directory / LOG) for job in jobs]
        paths = [*(str(code / one) for one in self.path), os.environ.get("PYTHONPATH", "")]
        self.environment = {**self.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._sessions = [SessionDir(runs / one) for one in self.directories]

    def _jobs(self, maker: JobMaker) -> list[Job]:
        """A job for each process."""
        jobs, at = [], 0
        for pack in self.packs or (HostPack(len(self.sessions), (), Resources()),):
            directories = tuple(maker.runs / one for one in self.directories[at : at + pack.sessions])
            job = maker.job_of(self.sessions[at : at + pack.sessions], directories[0], self.until)
            jobs.append(replace(job, directories=directories, attempts=pack.attempts, resources=pack.resources))
            at += pack.sessions
        return jobs

    def _time_is_up(self) -> None:
        while self._child is None:  # the child is about to start
            time.sleep(self.poll_seconds)
        self.stop_child()

    def _ended(self) -> bool:
        """Whether all sessions have failed or have nothing left to train, by their journals."""
        states = [one.read_state() for one in self._sessions]
        return all(state.state == "failed" or state.reached(self.until) for state in states)

    def _copy_log(self) -> None:
        """Prints new lines of the sessions' logs, for the log of the run."""
        for log in self._logs:
            for line in log.read_new():
                _log(line)


def _log(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (the log of the run)
