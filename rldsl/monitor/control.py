"""What the monitor can do to sessions: the same as the commands `stop` and `resume`, and TensorBoard beside it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rldsl.launch.local import LocalRun
from rldsl.launch.queues import Queues
from rldsl.launch.resume import resume_job
from rldsl.launch.stop import ask_to_stop, holder
from rldsl.monitor.facts import Seen
from rldsl.report.words import amount, count
from rldsl.spec.launcher import Local
from rldsl.store.errors import StoreError
from rldsl.store.layout import TENSORBOARD
from rldsl.store.processes import host_name
from rldsl.store.session_dir import SessionDir

MOST_LISTED = 12
PATIENCE = 30.0
"""Seconds that TensorBoard has to answer."""


@dataclass(frozen=True)
class Request:
    """Something to be confirmed: which sessions, in a few words, and all that will happen."""

    sessions: Sequence[Seen]
    question: str
    what: str
    queued: Sequence[Seen] = ()
    """Those of the sessions that a queue has."""


def stop_request(
    chosen: Iterable[Seen], seen: Mapping[str, Seen], runs: Path, jobs: Collection[str] = ()
) -> Request | None:
    """What stopping would do: a process or job that trains several sessions stops with all of them.

    `jobs` are those that queues have, waiting or running: a session of one of them is stopped by its queue.
    """
    chosen = list(chosen)
    queued = [one for one in chosen if one.job in jobs and one.status.state != "done"]
    running = [one for one in chosen if one.status.state == "running" and one not in queued]
    if not running and not queued:
        return None
    held = {path: holder(SessionDir(runs / path)) for path, one in seen.items() if one.status.state == "running"}
    here = [one for one in running if (held.get(one.path) or ("",))[0] == host_name()]
    elsewhere = [one for one in running if one not in here]
    processes = {held[one.path] for one in here}
    also = [seen[path] for path, by in held.items() if by in processes and seen[path] not in here]
    with_jobs = {one.job for one in queued}
    beside = [one for one in seen.values() if one.job in with_jobs and one not in queued and one.status.state != "done"]
    parts = [
        "Each is sent SIGTERM: it finishes its iteration, writes a checkpoint and stops. Nothing is lost; r goes on.\n",
        *_listed(here),
        *(["\nIn the same processes, and stopped with them:", *_listed(also)] if also else []),
        *(["\nTheir jobs are cancelled; what runs checkpoints first:", *_listed(queued)] if queued else []),
        *(["\nIn the same jobs, and stopped with them:", *_listed(beside)] if beside else []),
        *(["\nNot on this machine, and left alone:", *_listed(elsewhere)] if elsewhere else []),
    ]
    return Request([*here, *queued], f"Stop {count(len(here) + len(queued), 'session')}?", "\n".join(parts), queued)


def stop(request: Request, runs: Path) -> list[str]:
    """Asks each, or its queue; a sentence for each that could not be asked."""
    here = [one for one in request.sessions if one not in request.queued]
    refused = [text for one in here if (text := ask_to_stop(SessionDir(runs / one.path)))]
    return [*refused, *(_cancel(request.queued, runs) if request.queued else [])]


def _cancel(queued: Iterable[Seen], runs: Path) -> list[str]:
    """Cancels the jobs by their records; a sentence for each session without one."""
    queues, ids = Queues(runs), [one.status.session for one in queued]
    unknown = [f"{id} was not submitted from {runs}: cancel its job by hand" for id in ids if id not in queues.records]
    return [*unknown, *queues.cancel(queues.records[id] for id in ids if id in queues.records)]


def resume_request(chosen: Iterable[Seen], parallel: int, jobs: Collection[str] = ()) -> Request | None:
    """What resuming would do; a session whose job is in a queue goes on by itself."""
    stopped = [one for one in chosen if one.status.state in ("resume", "failed") and one.job not in jobs]
    if not stopped:
        return None
    how = f"Each goes on from its last checkpoint in a process of its own on this machine, {parallel} at a time."
    later = "; those that wait are started while it is open" if len(stopped) > parallel else ""
    text = "\n".join([f"{how} They outlive the monitor{later}.\n", *_listed(stopped)])
    return Request(stopped, f"Resume {count(len(stopped), 'session')}?", text)


def _listed(sessions: Sequence[Seen]) -> list[str]:
    lines = [_line(one) for one in sessions[:MOST_LISTED]]
    more = len(sessions) - MOST_LISTED
    return [*lines, *([f"  and {more} more"] if more > 0 else [])]


def _line(one: Seen) -> str:
    status = one.status
    note = f"  ({status.note})" if status.note else ""
    return f"  {status.session}  {status.experiment}  at {amount(status.frame)} of {amount(status.frames)} frames{note}"


class Resumer:
    """Sessions that the monitor started: so many at a time, until all have had their turn."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.local = LocalRun([], Local())

    def resume(self, request: Request) -> list[str]:
        """Queues each; a sentence for each that cannot be resumed."""
        refused = []
        for one in request.sessions:
            try:
                self.local.waiting.append(resume_job(SessionDir(self.runs / one.path), self.runs))
            except StoreError as error:
                refused.append(str(error))
        return [*refused, *self.poll()]

    def poll(self) -> list[str]:
        """Starts what there is room for; a sentence if it cannot."""
        try:
            self.local.poll()
        except (StoreError, OSError) as error:
            return [str(error)]
        return []


class Board:
    """A TensorBoard of its own, on loopback, that ends with the monitor."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, sessions: Sequence[Seen], runs: Path) -> str:
        """Starts it for these sessions instead of what it showed before; returns its address once it answers."""
        self.end()
        port = _free_port()
        spec = ",".join(f"{_name(one)}:{(runs / one.path / TENSORBOARD).resolve()}" for one in sessions)
        command = [sys.executable, "-m", "tensorboard.main", "--logdir_spec", spec, "--host", "127.0.0.1"]
        self.process = subprocess.Popen(
            [*command, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait(port)
        return f"http://127.0.0.1:{port}/"

    def _wait(self, port: int) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process and self.process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise StoreError("TensorBoard does not start: `python -m tensorboard.main` says why")

    def end(self) -> None:
        """Ends it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        self.process = None


def _name(one: Seen) -> str:
    return f"{one.status.experiment}-{one.status.session}".replace(":", "-").replace(",", "-")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
