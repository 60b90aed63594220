"""What the monitor does to sessions: stop and resume, like the commands of the same names."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rldsl.launch.jobs import Job
from rldsl.launch.local import LocalRun
from rldsl.launch.queues import Queues
from rldsl.launch.resume import resume_job
from rldsl.launch.stop import ask_to_stop, holder
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.words import amount, count
from rldsl.spec.launcher import Local
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

MAX_LISTED = 12


@dataclass(frozen=True)
class Request:
    """An action for the user to confirm: the sessions, the question, and what will happen."""

    sessions: Sequence[SessionSnapshot]
    question: str
    details: str
    queued: Sequence[SessionSnapshot] = ()
    """The sessions whose job is in a queue."""
    others: Sequence[SessionSnapshot] = ()
    """Sessions that were not chosen and stop with the chosen ones: they share a process or a job."""


@dataclass(frozen=True)
class Outcome:
    """What an action did: a sentence for each session that could not be reached, and the paths of those sessions."""

    errors: Sequence[str] = ()
    failed: Collection[str] = field(default=frozenset())


def stop_request(
    chosen: Iterable[SessionSnapshot],
    sessions: Mapping[str, SessionSnapshot],
    runs: Path,
    jobs: Collection[str] = (),
) -> Request | None:
    """Describes what stopping the chosen sessions would do; None if none of them can be stopped. Reads files.

    A process or job that trains several sessions stops with all of them. `jobs` are the ids that the queues report,
    waiting or running: the sessions of such a job are stopped by cancelling it.
    """
    chosen = list(chosen)
    queued = [session for session in chosen if session.job in jobs and session.status.state != "done"]
    running = [session for session in chosen if session.live and session not in queued]
    if not running and not queued:
        return None
    holders = {path: holder(SessionDir(runs / path)) for path, session in sessions.items() if session.live}
    local = [session for session in running if (process := holders.get(session.path)) and process.here]
    remote = [session for session in running if session not in local]
    processes = {holders[session.path] for session in local}
    same_process = [
        sessions[path] for path, process in holders.items() if process in processes and sessions[path] not in local
    ]
    same_job = _same_job(queued, sessions.values())
    parts = [
        "Each gets SIGTERM: it finishes its iteration, writes a checkpoint and stops. Nothing is lost: r resumes it.\n",
        *_listed(local),
        *(["\nIn the same processes, and stopped with them:", *_listed(same_process)] if same_process else []),
        *(["\nTheir jobs are cancelled; running jobs checkpoint first:", *_listed(queued)] if queued else []),
        *(["\nIn the same jobs, and stopped with them:", *_listed(same_job)] if same_job else []),
        *(["\nOn other machines, and not stopped:", *_listed(remote)] if remote else []),
    ]
    stopped = [*local, *queued]
    question = f"Stop {count(len(stopped), 'session')}?"
    return Request(stopped, question, "\n".join(parts), queued, [*same_process, *same_job])


def _same_job(queued: Sequence[SessionSnapshot], sessions: Iterable[SessionSnapshot]) -> list[SessionSnapshot]:
    """Unfinished sessions that were not chosen and run in the same jobs."""
    jobs = {session.job for session in queued}
    return [
        session
        for session in sessions
        if session.job in jobs and session not in queued and session.status.state != "done"
    ]


def stop(request: Request, runs: Path) -> Outcome:
    """Stops the processes, each once, and cancels the jobs."""
    errors: dict[str, str] = {}
    asked: dict[object, str | None] = {}
    for session in request.sessions:
        if session in request.queued:
            continue
        directory = SessionDir(runs / session.path)
        process = holder(directory) or session.path
        if process not in asked:
            asked[process] = ask_to_stop(directory)
        if (error := asked[process]) is not None:
            errors[session.path] = error
    refusals = _cancel(request.queued, runs) if request.queued else []
    refused = [session.path for session in request.queued] if refusals else []
    return Outcome([*errors.values(), *refusals], {*errors, *refused})


def _cancel(queued: Iterable[SessionSnapshot], runs: Path) -> list[str]:
    """Cancels the jobs by their records; returns a sentence for each session without one."""
    queues, ids = Queues(runs), [session.status.session for session in queued]
    unknown = [f"{id} was not submitted from {runs}: cancel its job by hand" for id in ids if id not in queues.records]
    return [*unknown, *queues.cancel(queues.records[id] for id in ids if id in queues.records)]


def resume_request(chosen: Iterable[SessionSnapshot], parallel: int, jobs: Collection[str] = ()) -> Request | None:
    """Describes what resuming would do; None if there is nothing to resume. Queued jobs resume by themselves."""
    stopped = [
        session
        for session in chosen
        if session.status.state in ("resume", "paused", "failed") and session.job not in jobs
    ]
    if not stopped:
        return None
    how = f"Each resumes from its last checkpoint in a process of its own on this machine, {parallel} at a time."
    waiting = "; sessions that wait for a process start only while it is open" if len(stopped) > parallel else ""
    details = "\n".join([f"{how} They keep running when the monitor is closed{waiting}.\n", *_listed(stopped)])
    return Request(stopped, f"Resume {count(len(stopped), 'session')}?", details)


def _listed(sessions: Sequence[SessionSnapshot]) -> list[str]:
    lines = [_describe(session) for session in sessions[:MAX_LISTED]]
    more = len(sessions) - MAX_LISTED
    return [*lines, *([f"  and {more} more"] if more > 0 else [])]


def _describe(session: SessionSnapshot) -> str:
    status = session.status
    note = f"  ({status.note})" if status.note else ""
    return f"  {status.session}  {status.experiment}  at {amount(status.frame)} of {amount(status.frames)} frames{note}"


class Resumer:
    """Runs resumed sessions in local processes, a limited number at a time. Threads may use it."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.local = LocalRun([], Local())
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def resume(self, request: Request) -> Outcome:
        """Queues the sessions of a request and starts as many as fit."""
        errors: dict[str, str] = {}
        for session in request.sessions:
            try:
                job = resume_job(SessionDir(self.runs / session.path), self.runs)
            except (StoreError, OSError) as error:
                errors[session.path] = str(error)
                continue
            with self._lock:
                self._jobs[session.path] = job
                self.local.waiting.append(job)
        return Outcome([*errors.values(), *self.poll()], errors.keys())

    @property
    def active(self) -> set[str]:
        """The paths of sessions that wait for a process or have one."""
        with self._lock:
            jobs = {*self.local.waiting, *self.local.running}
            return {path for path, job in self._jobs.items() if job in jobs}

    def poll(self) -> list[str]:
        """Starts waiting sessions while there are free processes; returns a sentence if that fails."""
        with self._lock:
            try:
                self.local.poll()
            except (StoreError, OSError) as error:
                return [str(error)]
        return []
