"""What the monitor does to sessions: stop and resume, like the commands of the same names, and TensorBoard."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rldsl.launch.local import LocalRun
from rldsl.launch.queues import Queues
from rldsl.launch.resume import resume_job
from rldsl.launch.stop import ask_to_stop, holder
from rldsl.monitor.session_index import SessionSnapshot
from rldsl.report.tensorboard import LogDirectory, end, tensorboard_command
from rldsl.report.words import amount, count
from rldsl.spec.launcher import Local
from rldsl.store.errors import StoreError
from rldsl.store.processes import host_name
from rldsl.store.session_dir import SessionDir

MAX_LISTED = 12
STARTUP_TIMEOUT = 30.0
"""Seconds to wait for TensorBoard to accept connections."""


@dataclass(frozen=True)
class Request:
    """An action for the user to confirm: the sessions, the question, and what will happen."""

    sessions: Sequence[SessionSnapshot]
    question: str
    details: str
    queued: Sequence[SessionSnapshot] = ()
    """The sessions whose job is in a queue."""


def stop_request(
    chosen: Iterable[SessionSnapshot],
    sessions: Mapping[str, SessionSnapshot],
    runs: Path,
    jobs: Collection[str] = (),
) -> Request | None:
    """Describes what stopping the chosen sessions would do; None if none of them can be stopped.

    A process or job that trains several sessions stops with all of them. `jobs` are the ids that the queues report,
    waiting or running: the sessions of such a job are stopped by cancelling it.
    """
    chosen = list(chosen)
    queued = [session for session in chosen if session.job in jobs and session.status.state != "done"]
    running = [session for session in chosen if session.status.state == "running" and session not in queued]
    if not running and not queued:
        return None
    holders = {
        path: holder(SessionDir(runs / path)) for path, session in sessions.items() if session.status.state == "running"
    }
    local = [session for session in running if (holders.get(session.path) or ("",))[0] == host_name()]
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
    return Request(stopped, f"Stop {count(len(stopped), 'session')}?", "\n".join(parts), queued)


def _same_job(queued: Sequence[SessionSnapshot], sessions: Iterable[SessionSnapshot]) -> list[SessionSnapshot]:
    """Unfinished sessions that were not chosen and run in the same jobs."""
    jobs = {session.job for session in queued}
    return [
        session
        for session in sessions
        if session.job in jobs and session not in queued and session.status.state != "done"
    ]


def stop(request: Request, runs: Path) -> list[str]:
    """Stops the processes and cancels the jobs; returns a sentence for each session that could not be stopped."""
    local = [session for session in request.sessions if session not in request.queued]
    errors = [error for session in local if (error := ask_to_stop(SessionDir(runs / session.path)))]
    return [*errors, *(_cancel(request.queued, runs) if request.queued else [])]


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
    """Runs resumed sessions in local processes, a limited number at a time."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.local = LocalRun([], Local())

    def resume(self, request: Request) -> list[str]:
        """Queues the sessions of a request; returns a sentence for each that cannot be resumed."""
        errors = []
        for session in request.sessions:
            try:
                self.local.waiting.append(resume_job(SessionDir(self.runs / session.path), self.runs))
            except StoreError as error:
                errors.append(str(error))
        return [*errors, *self.poll()]

    def poll(self) -> list[str]:
        """Starts waiting sessions while there are free processes; returns a sentence if that fails."""
        try:
            self.local.poll()
        except (StoreError, OSError) as error:
            return [str(error)]
        return []


class TensorBoard:
    """A TensorBoard process on the loopback interface; it ends with the monitor."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.logs: LogDirectory | None = None

    def start(self, sessions: Sequence[SessionSnapshot], runs: Path) -> str:
        """Starts it for these sessions, replacing an earlier one; returns its URL once it accepts connections."""
        self.end()
        port = _free_port()
        self.logs = LogDirectory()
        self.logs.add([SessionDir(runs / session.path) for session in sessions])
        self.process = subprocess.Popen(
            tensorboard_command(self.logs.path, port=port),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait(port)
        return f"http://127.0.0.1:{port}/"

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + STARTUP_TIMEOUT
        while time.monotonic() < deadline and self.process and self.process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise StoreError("TensorBoard did not start: run `python -m tensorboard.main` to see why")

    def end(self) -> None:
        """Ends the process, if it is running."""
        if self.process is not None:
            end(self.process)
        if self.logs is not None:
            self.logs.close()
        self.process = self.logs = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
