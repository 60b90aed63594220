"""The jobs of this user in SLURM and dstack: polled rarely, from a thread, with a time limit; errors become notes."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.launch.dstack.api import PAGE, Api, DstackError, find_server, spending_of
from rldsl.launch.queues import Queues
from rldsl.monitor.snapshot import SessionSnapshot

POLL_SECONDS = 30.0
"""Shortest interval between two polls of the queues."""
TIMEOUT = 10.0
SQUEUE = ["squeue", "--me", "--noheader", "--array", "--format=%i|%T|%r|%j|%M|%N"]


class QueueRow(NamedTuple):
    """One job as its queue reports it."""

    backend: str
    id: str
    state: str
    reason: str
    name: str = ""
    time: str = ""
    sessions: tuple[str, ...] = ()  # ids of the sessions that it runs
    cost: str = ""  # so far, and its price


@dataclass(frozen=True)
class QueueReport:
    """The jobs at the last poll, and a note for each queue that failed."""

    rows: Sequence[QueueRow] = ()
    notes: Sequence[str] = ()
    polled_at: float | None = None
    spent: Sequence[str] = ()
    """What all jobs of the run directory have cost and used so far, in the words of `status`."""


Source = Callable[[], list[QueueRow]]


class Queue:
    """Polls the available queues, at most once in `POLL_SECONDS`."""

    def __init__(
        self,
        sources: Mapping[str, Source] | None = None,
        clock: Callable[[], float] = time.monotonic,
        runs: Path | None = None,
    ) -> None:
        """`runs` is the run directory whose jobs are accounted for."""
        self.sources = available_sources() if sources is None else sources
        self.clock, self.runs = clock, runs
        self.report = QueueReport()
        self._polling = threading.Lock()

    @property
    def due(self) -> bool:
        """Whether the last report is old enough for another poll."""
        return self.report.polled_at is None or self.clock() - self.report.polled_at >= POLL_SECONDS

    def poll(self) -> QueueReport:
        """A new report, or the last one if it is recent or another thread is polling."""
        if not self.due or not self._polling.acquire(blocking=False):
            return self.report
        try:
            self.report = self._poll_sources()
        finally:
            self._polling.release()
        return self.report

    def _poll_sources(self) -> QueueReport:
        start = self.clock()
        rows: list[QueueRow] = []
        notes: list[str] = []
        for name, source in self.sources.items():
            try:
                rows += source()
            except Exception as error:  # the monitor must survive any failure of a queue
                notes.append(f"{name} does not answer: {_reason_for(error)}")
        spent: list[str] = []
        try:
            spent = spent_so_far(self.runs) if self.runs else []
        except Exception as error:
            notes.append(f"costs are not known: {_reason_for(error)}")
        return QueueReport(rows, notes, start, spent)


def spent_so_far(runs: Path) -> list[str]:
    """What the jobs that were submitted from a run directory have cost, and the core-hours that they have used."""
    queues = Queues(runs)
    if not queues.records:
        return []
    spending = queues.spending({id.rpartition("-s")[0] for id in queues.records})
    return [words for words in (spending.words, queues.usage(queues.records).words) if words]


def available_sources() -> dict[str, Source]:
    """The queues that can be polled from this machine."""
    sources: dict[str, Source] = {}
    if shutil.which("squeue"):
        sources["SLURM"] = slurm
    if _has_dstack():
        sources["dstack"] = dstack
    return sources


def slurm() -> list[QueueRow]:
    """The jobs of this user in SLURM."""
    result = subprocess.run(
        SQUEUE, capture_output=True, text=True, timeout=TIMEOUT, check=True, stdin=subprocess.DEVNULL
    )
    return parse_squeue(result.stdout)


def parse_squeue(text: str) -> list[QueueRow]:
    """Parses the output of `squeue`; other lines are skipped."""
    rows = []
    for line in text.splitlines():
        cells = line.strip().split("|")
        if len(cells) == 6:
            id, state, reason, name, spent, node = cells
            rows.append(QueueRow("slurm", id, state.lower(), _reason_or_node(reason, node), name, spent))
    return rows


def _reason_or_node(reason: str, node: str) -> str:
    return f"on {node}" if reason in ("None", "") and node else reason


def dstack() -> list[QueueRow]:
    """The active runs of the dstack project."""
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
    """Parses the answer of `/api/runs/list`."""
    return [_dstack_row(run) for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []


def _dstack_row(run: dict[str, Any]) -> QueueRow:
    name = str((run.get("run_spec") or {}).get("run_name") or run.get("id", "?"))
    reason = run.get("termination_reason") or run.get("status_message") or ""
    spent = spending_of(run)
    price = f"${spent.per_hour:.2f}/h" if spent.per_hour else ""
    cost = ", ".join(filter(None, [f"${spent.cost:.2f}" if spent.cost else "", price]))
    return QueueRow("dstack", name, str(run.get("status", "?")), str(reason), name, cost=cost)


def with_sessions(rows: Sequence[QueueRow], sessions: Mapping[str, SessionSnapshot]) -> list[QueueRow]:
    """Adds to each job the ids of the sessions that were submitted as it, or as a task of its array."""
    by_job: dict[str, list[str]] = {}
    for session in sessions.values():
        if session.job:
            by_job.setdefault(session.job, []).append(session.status.session)
    return [row._replace(sessions=tuple(by_job.get(row.id) or by_job.get(_array(row.id)) or ())) for row in rows]


def _array(job: str) -> str:
    """The array of a task: `4711` of `4711_0`."""
    return job.partition("_")[0]


def _reason_for(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"timed out after {error.timeout:.0f} seconds"
    if isinstance(error, subprocess.CalledProcessError):
        return (error.stderr or "").strip().partition("\n")[0] or f"exit code {error.returncode}"
    return str(error) or type(error).__name__
