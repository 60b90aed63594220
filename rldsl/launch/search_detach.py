"""Detached searches: starting their drivers, what drives them now, and stopping them."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from rldsl.launch.follow import StopSignals, sleep
from rldsl.launch.job_records import JobRecord, newest_drivers, read_records
from rldsl.launch.jobs import Job
from rldsl.launch.queues import QueuedJob, Queues
from rldsl.launch.search import SearchResult
from rldsl.launch.search_observer import SearchObserver
from rldsl.launch.search_queue import QUEUE_SECONDS
from rldsl.launch.search_run import SearchRequest, refuse_results_elsewhere
from rldsl.launch.submission_lock import submission_lock
from rldsl.launch.transaction import settle_submissions, submit_jobs
from rldsl.search.history import History
from rldsl.search.schedule import Finished, decide, schedule_of
from rldsl.store.claim import read_heartbeat
from rldsl.store.errors import AlreadyRunning
from rldsl.store.layout import ALIVE
from rldsl.store.processes import ProcessId
from rldsl.store.scrub import scrub_command
from rldsl.store.search_dir import SearchDir

FOLLOW_SECONDS = 0.5
STOP_SECONDS = 60.0
"""How long to wait for a driver that was asked to stop; processes of this machine checkpoint first."""


def detach_search(request: SearchRequest) -> JobRecord:
    """Starts the driver of a search as a process or job of its own and returns the record of it.

    Raises `AlreadyRunning` if it is driven already, or its driver is about to start.
    """
    refuse_results_elsewhere(request.experiment)
    with submission_lock(request.runs):
        settle_submissions(request.runs)
        return _detach(request)


def _detach(request: SearchRequest) -> JobRecord:
    queues = Queues(request.runs)
    if driver := find_driver(request.directory, queues).description:
        raise AlreadyRunning(f"the search {request.directory.path.name} has a driver: {driver}")
    queues.refuse_errors()
    directory = request.create_directory()
    directory.refuse_damage()
    code = request.freeze()
    command = [sys.executable, "-m", "rldsl.launch.search_driver", str(directory.path.resolve())]
    command += ["--runs", str(request.runs.resolve()), "--file", str(code.file), "--code", str(code.folder)]
    command += ["--command", json.dumps(scrub_command(request.command))]
    command += ["--fail-fast"] * request.fail_fast + ["--retry-failed"] * request.retry_failed
    name = f"search-{request.experiment.name}"
    job = Job((), directory.path.resolve(), tuple(command), name=name, cwd=code.cwd, path=code.path)
    path = str(directory.path.relative_to(request.runs))
    (record,) = submit_jobs(request.runs, request.experiment.launcher.driver(), [job], code.folder, path)
    return record


@dataclass(frozen=True)
class Driver:
    """What drives a search, or drove it last."""

    directory: SearchDir
    job: QueuedJob | None = None
    """The newest driver that was detached."""
    first: SearchDir | None = None
    """The first stage of the search, if this is a later one: they have the same driver."""

    @property
    def live(self) -> bool:
        """Whether the detached driver waits or runs."""
        return self.job is not None and self.job.live

    @property
    def running(self) -> bool:
        """Whether a process drives the search now."""
        return self.directory.running

    @property
    def description(self) -> str | None:
        """The job and its state, or the process; None if nothing drives the search or is about to."""
        if self.live and self.job is not None:
            record, state = self.job
            where = f" on {state.where}" if state.where else f": {state.reason}" if state.reason else ""
            return f"{record.backend} job {record.job_id}, {state.state}{where}"
        if not self.running:
            return None
        beat = read_heartbeat(self.directory.path / ALIVE) or {}
        return f"process {beat.get('pid')} on {beat.get('host')}"

    @property
    def failure(self) -> str | None:
        """Why the last detached driver ended, if it neither finished nor was stopped and nothing drives the search."""
        if self.job is None or self.description is not None or self.job.state.state != "failed":
            return None
        return f"{self.job.record.backend} job {self.job.record.job_id}: {self.job.state.reason}"


def find_driver(directory: SearchDir, queues: Queues, first: SearchDir | None = None) -> Driver:
    """The driver of a search, with the state that its queue reports; `first` is the first stage of the search."""
    path = (first or directory).path.relative_to(queues.runs)
    record = newest_drivers(read_records(queues.runs)).get(str(path))
    return Driver(directory, None if record is None else queues.job(record), first)


def follow_driver(driver: Driver, request: SearchRequest, observer: SearchObserver, stop: StopSignals) -> SearchResult:
    """Reports what a detached driver journals until it has ended or the user leaves; asks its queue now and then."""
    directory, schedule = driver.directory, schedule_of(request.experiment)
    seen, asked = len(directory.events()), time.monotonic()
    while not stop.count:
        events = directory.events()
        for number in range(seen, len(events)):
            observer.journalled(events[number], History.of(events[: number + 1]))
        seen, history = len(events), History.of(events)
        observer.progress(history, ())
        if not driver.running and time.monotonic() >= asked + QUEUE_SECONDS:
            driver, asked = find_driver(directory, Queues(request.runs), driver.first), time.monotonic()
        finished = isinstance(decide(history, schedule), Finished)
        if not driver.running and (finished or not driver.live):
            return SearchResult("finished" if finished else "stopped", history)
        sleep(FOLLOW_SECONDS, stop, 0)
    return SearchResult("unfollowed", History.of(directory.events()))


def stop_driver(driver: Driver, queues: Queues, wait: Callable[[float], None] = time.sleep) -> str | None:
    """Stops what drives a search and waits until it has ended; returns a sentence if that is not possible.

    The sessions of a queue continue.
    """
    name = driver.directory.path.name
    if driver.live and driver.job is not None:
        if refusals := queues.cancel([driver.job.record]):
            return refusals[0]
    elif driver.running and (problem := _terminate(driver.directory)):
        return problem
    deadline = time.monotonic() + STOP_SECONDS
    while driver.running:
        if time.monotonic() > deadline:
            return f"{name} is still driven by {driver.description}: its jobs were not cancelled"
        wait(0.2)
    return None


def _terminate(directory: SearchDir) -> str | None:
    """Asks the process that drives a search to stop, if it is one of this machine."""
    process = ProcessId.parse(read_heartbeat(directory.path / ALIVE))
    if process is None:
        return None
    if not process.here:
        return f"{directory.path.name} is driven by a process on {process.host}: stop it there"
    try:
        process.send_signal(signal.SIGTERM)
    except PermissionError:
        return f"{directory.path.name} is driven by a process of another user"
    return None
