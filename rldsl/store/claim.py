"""Locks a session for one process, with a heartbeat file that other hosts can read."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rldsl.store.errors import AlreadyRunning, CannotWrite, writing
from rldsl.store.files import replace_json
from rldsl.store.processes import host_name, is_alive, start_time

HEARTBEAT = 10.0  # seconds between heartbeats
SILENCE = 60.0  # seconds without a heartbeat after which a process on another host counts as dead

_held_locks: set[int] = set()
_clocks: dict[int, float] = {}  # by device: seconds that the filesystem's clock is ahead of this host's


def _drop_inherited_locks() -> None:
    """A forked worker must not keep the session locked after its parent has died."""
    while _held_locks:
        os.close(_held_locks.pop())


os.register_at_fork(after_in_child=_drop_inherited_locks)


@contextmanager
def hold(lock: Path, alive: Path) -> Iterator[None]:
    """Holds `lock` and updates the heartbeat `alive` inside the block; raises AlreadyRunning if it is held already."""
    with _locked(lock, alive):
        _beat(alive)
        owner = os.getpid()
        stop = threading.Event()
        thread = threading.Thread(target=_keep_beating, args=(alive, stop), name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            if os.getpid() == owner:  # not in a forked worker that exits
                with suppress(OSError):
                    alive.unlink()


def is_held(alive: Path) -> bool:
    """Whether the process that wrote `alive` is running: checked by pid on its host, by its heartbeat on others."""
    beat = read_heartbeat(alive)
    if beat is None:
        return False
    if beat.get("host") != host_name():
        return _heard_lately(alive)
    pid, started = beat.get("pid"), beat.get("start_time")
    return isinstance(pid, int) and isinstance(started, int | float) and is_alive(pid, started)


def read_heartbeat(alive: Path) -> dict[str, Any] | None:
    try:
        beat = json.loads(alive.read_bytes())
    except (OSError, ValueError):
        return None
    return beat if isinstance(beat, dict) else None


@contextmanager
def _locked(lock: Path, alive: Path) -> Iterator[None]:
    with writing(lock):
        fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    _held_locks.add(fd)
    owner = os.getpid()
    try:
        _lock_or_raise(fd, lock, alive)
        yield
    finally:
        if os.getpid() == owner:  # a forked worker has closed it, and the descriptor may be another file by now
            _held_locks.discard(fd)
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)  # closing is not enough while a fork still holds a copy
            os.close(fd)


def _lock_or_raise(fd: int, lock: Path, alive: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _already_running(lock, alive) from None
    except OSError:  # a filesystem without locks: rely on the heartbeat
        if is_held(alive):
            raise _already_running(lock, alive) from None


def _already_running(lock: Path, alive: Path) -> AlreadyRunning:
    beat = read_heartbeat(alive)
    holder = f"on {beat.get('host')} as process {beat.get('pid')}" if beat else "in another process"
    return AlreadyRunning(f"the session {lock.parent} is already running {holder}")


def _keep_beating(alive: Path, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT):
        with suppress(CannotWrite):  # a full disk must not end training; a later heartbeat may succeed
            _beat(alive)


def _beat(alive: Path) -> None:
    pid = os.getpid()
    beat = {"host": host_name(), "pid": pid, "start_time": start_time(pid), "time": round(time.time(), 3)}
    replace_json(alive, beat, durable=False)


def _heard_lately(alive: Path) -> bool:
    try:
        status = alive.stat()
    except OSError:
        return False
    return time.time() + _clock_ahead(alive.parent, status.st_dev) - status.st_mtime < SILENCE


def _clock_ahead(directory: Path, device: int) -> float:
    """Seconds that the clock of a filesystem is ahead of this host's, measured once per filesystem."""
    if device not in _clocks:
        _clocks[device] = _measure_clock(directory)
    return _clocks[device]


def _measure_clock(directory: Path) -> float:
    probe = directory / f".clock-{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        probe.touch(exist_ok=False)
        ahead = probe.stat().st_mtime - time.time()
        probe.unlink()
    except OSError:
        return 0.0
    return ahead
