"""The lock of a run directory for submitters: one at a time, from reconciling until all jobs are recorded."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from rldsl.launch.job_records import JOBS
from rldsl.store.claim import hold, read_heartbeat
from rldsl.store.errors import AlreadyRunning, writing

LOCK_FILE = "lock"
HOLDER_FILE = "submitting.json"
REQUEST_FILE = "request.lock"
"""Locked by a submitter and inherited by its `sbatch`: stays locked while the request of a killed one is on its way."""
WAIT_SECONDS = 0.1

_held: dict[Path, int] = {}
"""The run directories that this process has locked, each with the descriptor of its `REQUEST_FILE`."""


@contextmanager
def submission_lock(runs: Path, waiting: Callable[[str], None] | None = None, *, wait: bool = True) -> Iterator[None]:
    """Holds the lock inside the block. A process that holds it already may enter again.

    Waits for another submitter, and tells `waiting` who that is; without `wait`, raises `AlreadyRunning`.
    """
    if runs.resolve() in _held:
        yield
        return
    with writing(runs):
        (runs / JOBS).mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        while not _acquire(runs, stack):
            if not wait:
                raise AlreadyRunning(_holder(runs))
            if waiting is not None:
                waiting(_holder(runs))
                waiting = None
            time.sleep(WAIT_SECONDS)
        yield


def request_fds(runs: Path) -> tuple[int, ...]:
    """Descriptors for processes that send a request to a queue: they may outlive their submitter."""
    fd = _held.get(runs.resolve())
    return () if fd is None else (fd,)


def _acquire(runs: Path, stack: ExitStack) -> bool:
    try:
        stack.enter_context(hold(runs / JOBS / LOCK_FILE, runs / JOBS / HOLDER_FILE))
    except AlreadyRunning:
        return False
    fd = os.open(runs / JOBS / REQUEST_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    stack.callback(os.close, fd)
    with suppress(OSError):  # a filesystem without locks
        fcntl.flock(fd, fcntl.LOCK_EX)
    _held[runs.resolve()] = fd
    stack.callback(_held.pop, runs.resolve())
    return True


def _holder(runs: Path) -> str:
    beat = read_heartbeat(runs / JOBS / HOLDER_FILE) or {}
    who = f"process {beat.get('pid')} on {beat.get('host')}" if beat else "another command"
    return f"{who} is submitting jobs from {runs}"
