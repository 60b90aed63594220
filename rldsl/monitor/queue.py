"""What the queues say: SLURM and dstack, asked seldom, in a thread, with a time limit; an answer or a sentence."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rldsl.launch.dstack.api import PAGE, Api, DstackError, find_server
from rldsl.monitor.facts import Seen

EVERY = 30.0
"""Seconds between two questions to a queue, at least."""
TIMEOUT = 10.0
SQUEUE = ["squeue", "--me", "--noheader", "--array", "--format=%i|%T|%r|%j|%M|%N"]


class QueueRow(NamedTuple):
    """One job as its queue tells of it."""

    place: str
    id: str
    state: str
    reason: str
    name: str = ""
    time: str = ""
    sessions: tuple[str, ...] = ()  # ids of ours that it runs


@dataclass(frozen=True)
class Answer:
    """What the queues said when they were last asked, and what went wrong."""

    rows: Sequence[QueueRow] = ()
    notes: Sequence[str] = ()
    asked: float | None = None


Source = Callable[[], list[QueueRow]]


class Queue:
    """Asks the queues that are there, no more often than every half a minute however often it is asked itself."""

    def __init__(
        self, sources: Mapping[str, Source] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.sources = sources_here() if sources is None else sources
        self.clock = clock
        self.answer = Answer()
        self._asking = threading.Lock()

    @property
    def due(self) -> bool:
        return self.answer.asked is None or self.clock() - self.answer.asked >= EVERY

    def ask(self) -> Answer:
        """The answer of the queues, or the last one while it is fresh or a question is under way."""
        if not self.due or not self._asking.acquire(blocking=False):
            return self.answer
        try:
            self.answer = self._ask()
        finally:
            self._asking.release()
        return self.answer

    def _ask(self) -> Answer:
        began, rows, notes = self.clock(), [], []
        for name, source in self.sources.items():
            try:
                rows += source()
            except Exception as error:  # whatever a queue answers, the monitor goes on
                notes.append(f"{name} does not answer: {_sentence(error)}")
        return Answer(rows, notes, began)


def sources_here() -> dict[str, Source]:
    """The queues that this machine can ask."""
    found: dict[str, Source] = {}
    if shutil.which("squeue"):
        found["SLURM"] = slurm
    if _has_dstack():
        found["dstack"] = dstack
    return found


def slurm() -> list[QueueRow]:
    """The jobs of this user."""
    answer = subprocess.run(
        SQUEUE, capture_output=True, text=True, timeout=TIMEOUT, check=True, stdin=subprocess.DEVNULL
    )
    return parse_squeue(answer.stdout)


def parse_squeue(text: str) -> list[QueueRow]:
    """The rows of `squeue`; lines that are not such are passed over."""
    rows = []
    for line in text.splitlines():
        cells = line.strip().split("|")
        if len(cells) == 6:
            id, state, reason, name, spent, node = cells
            rows.append(QueueRow("slurm", id, state.lower(), _reason(reason, node), name, spent))
    return rows


def _reason(reason: str, node: str) -> str:
    return f"on {node}" if reason in ("None", "") and node else reason


def dstack() -> list[QueueRow]:
    """The runs of the project that have not ended."""
    api = Api()
    return parse_dstack(
        api.call("/api/runs/list", {"project_name": api.server.project, "only_active": True, "limit": PAGE})
    )


def _has_dstack() -> bool:
    try:
        find_server()
    except DstackError:
        return False
    return True


def parse_dstack(runs: Any) -> list[QueueRow]:
    """The rows of `/api/runs/list`."""
    return [_dstack_row(run) for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []


def _dstack_row(run: dict[str, Any]) -> QueueRow:
    name = str((run.get("run_spec") or {}).get("run_name") or run.get("id", "?"))
    reason = run.get("termination_reason") or run.get("status_message") or ""
    return QueueRow("dstack", name, str(run.get("status", "?")), str(reason), name)


def joined(rows: Sequence[QueueRow], seen: Mapping[str, Seen]) -> list[QueueRow]:
    """Each job with the ids of our sessions that were submitted as it, or as a task of its array."""
    by_job: dict[str, list[str]] = {}
    for one in seen.values():
        if one.job:
            by_job.setdefault(one.job, []).append(one.status.session)
    return [
        row._replace(sessions=tuple(by_job.get(row.id) or by_job.get(row.id.partition("_")[0], ()))) for row in rows
    ]


def _sentence(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"nothing came in {error.timeout:.0f} seconds"
    if isinstance(error, subprocess.CalledProcessError):
        return (error.stderr or "").strip().partition("\n")[0] or f"it ended with {error.returncode}"
    return str(error) or type(error).__name__
