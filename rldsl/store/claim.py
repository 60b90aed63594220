"""Claims a session for one process: by a lock, and by a heartbeat file that works where locks are local to a host.

A process that wants the session looks at both. Each heartbeat carries the claim of its writer, and the newest claim
counts: a process that was suspended so long that another one took over finds the other's claim before it writes.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.spec.json_text import parse_object
from rldsl.store.errors import AlreadyRunning, CannotWrite, ClaimLost, writing
from rldsl.store.files import replace_json
from rldsl.store.processes import ProcessId

HEARTBEAT = 10.0  # seconds between heartbeats
SILENCE = 60.0  # seconds without a heartbeat after which a process on another host counts as dead
WATCH = 15.0  # seconds without a new heartbeat before the session of a silent host is taken over
CERTAIN = 3600.0  # seconds of silence that no difference between clocks explains
CLOCK_SECONDS = 60.0  # how long a measured difference between clocks is used
POLL = 0.5

_held_locks: set[int] = set()


def _drop_inherited_locks() -> None:
    """A forked worker must not keep the session locked after its parent has died."""
    while _held_locks:
        os.close(_held_locks.pop())


os.register_at_fork(after_in_child=_drop_inherited_locks)


class Claim:
    """The right of this process to write to a session."""

    def __init__(self, alive: Path) -> None:
        self.alive = alive
        self.token = os.urandom(8).hex()
        self._stamp: tuple[int, int] | None = None

    def beat(self) -> None:
        """Writes a heartbeat with this claim."""
        process = ProcessId.of(os.getpid())
        assert process is not None, "this process runs"
        beat = {**process.data(), "claim": self.token, "time": round(time.time(), 3)}
        replace_json(self.alive, beat, durable=False)
        self._stamp = _stamp(self.alive)

    def verify(self) -> None:
        """Raises ClaimLost if another process has taken over; called before each write.

        It opens the file, because network filesystems compare an opened file with that of the server.
        """
        if (stamp := _stamp(self.alive)) is not None and stamp == self._stamp:
            return
        beat = read_heartbeat(self.alive)
        if beat is None or beat.get("claim") != self.token:
            owner = ProcessId.parse(beat)
            by = f"was taken over by {owner}" if owner else f"was released: {self.alive.name} is gone"
            raise ClaimLost(f"the session {self.alive.parent} {by}; this process stops without writing")


class Patience(NamedTuple):
    """How long to wait for the process that holds a session, and whom to tell."""

    seconds: float = 0.0
    tell: Callable[[str], None] = lambda sentence: None
    stop: Callable[[], object] = lambda: None
    """Whether to give up waiting."""


NO_PATIENCE = Patience()


@contextmanager
def hold(lock: Path, alive: Path, patience: Patience = NO_PATIENCE) -> Iterator[Claim]:
    """Claims the session inside the block, with a heartbeat; raises AlreadyRunning if another process holds it."""
    with _locked(lock, alive, patience):
        claim = Claim(alive)
        claim.beat()
        owner = os.getpid()
        stop = threading.Event()
        thread = threading.Thread(target=_keep_beating, args=(claim, stop), name="heartbeat", daemon=True)
        thread.start()
        try:
            yield claim
        finally:
            stop.set()
            thread.join()
            if os.getpid() == owner:  # not in a forked worker that exits
                with suppress(OSError, ClaimLost):
                    claim.verify()
                    alive.unlink()


def is_held(alive: Path) -> bool:
    """Whether the process that wrote `alive` is running: checked by pid on its machine, by its heartbeat on others."""
    process = ProcessId.parse(read_heartbeat(alive))
    if process is None:
        return False
    return process.alive if process.here else abs(_silence(alive)) < SILENCE


def read_heartbeat(alive: Path) -> dict[str, Any] | None:
    try:
        return parse_object(alive.read_bytes())
    except (OSError, ValueError):
        return None


@contextmanager
def _locked(lock: Path, alive: Path, patience: Patience) -> Iterator[None]:
    with writing(lock):
        fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    _held_locks.add(fd)
    owner = os.getpid()
    try:
        _wait_for_lock(fd, lock, alive, patience)
        yield
    finally:
        if os.getpid() == owner:  # a forked worker has closed it, and the descriptor may be another file by now
            _held_locks.discard(fd)
            _unlock(fd)  # closing is not enough while a fork still holds a copy
            os.close(fd)


def _wait_for_lock(fd: int, lock: Path, alive: Path, patience: Patience) -> None:
    """Returns with the lock, and no sign of another process; the lock is free while it waits."""
    deadline, watch, told = time.monotonic() + patience.seconds, _Watch(alive), False
    while True:
        locked = _try_lock(fd)
        held = watch.held() if locked else True
        if held is False:
            return
        if locked:
            _unlock(fd)
        if patience.stop() or (held and time.monotonic() >= deadline):
            raise _already_running(lock, alive)
        if not told:
            holder = ProcessId.parse(read_heartbeat(alive)) or "the process that holds the session"
            patience.tell(f"waiting for {holder} to end, at most {max(patience.seconds, WATCH):.0f} s")
            told = True
        time.sleep(POLL)


class _Watch:
    """Watches the heartbeat of a process on another machine, whose clock may be wrong."""

    def __init__(self, alive: Path) -> None:
        self.alive = alive
        self.stamp: tuple[int, int] | None = None
        self.since = 0.0

    def held(self) -> bool | None:
        """Whether another process holds the session; None if that takes more time to find out."""
        process = ProcessId.parse(read_heartbeat(self.alive))
        if process is None or process == ProcessId.of(os.getpid()):
            return False
        if process.here:
            return process.alive
        silence = _silence(self.alive)
        if 0 <= silence < SILENCE:
            return True
        if silence > CERTAIN:
            return False
        return self._changes()

    def _changes(self) -> bool | None:
        """True if there was a new heartbeat while it was watched, False if there was none for long enough."""
        stamp = _stamp(self.alive)
        if self.stamp is None:
            self.stamp, self.since = stamp, time.monotonic()
        if stamp != self.stamp:
            return True
        return False if time.monotonic() > self.since + WATCH else None


def _try_lock(fd: int) -> bool:
    """Whether the lock is ours; on a filesystem without locks, the heartbeat alone decides."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _unlock(fd: int) -> None:
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)


def _already_running(lock: Path, alive: Path) -> AlreadyRunning:
    process = ProcessId.parse(read_heartbeat(alive))
    holder = f"on {process.host} as process {process.pid}" if process else "in another process"
    return AlreadyRunning(f"the session {lock.parent} is already running {holder}")


def _keep_beating(claim: Claim, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT):
        try:
            claim.verify()
            claim.beat()
        except ClaimLost:
            return
        except (OSError, CannotWrite):  # a full disk must not end training; a later heartbeat may succeed
            continue


def _stamp(path: Path) -> tuple[int, int] | None:
    """Inode and modification time of a file; None if there is none. It is opened, see `Claim.verify`."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return status.st_ino, status.st_mtime_ns


def _silence(alive: Path) -> float:
    """Seconds since the last heartbeat, by the clock of the filesystem; negative if its writer's clock is ahead."""
    try:
        status = alive.stat()
    except OSError:
        return float("inf")
    return time.time() + _clock.ahead(alive.parent, status.st_dev) - status.st_mtime


class _FilesystemClock:
    """Seconds that the clock of a filesystem is ahead of this host's, measured again when a clock may have changed."""

    def __init__(self) -> None:
        self._measured: dict[int, tuple[float, float, float]] = {}

    def ahead(self, directory: Path, device: int) -> float:
        now, shift = time.monotonic(), time.time() - time.monotonic()
        if device in self._measured:
            ahead, then, its_shift = self._measured[device]
            if now - then < CLOCK_SECONDS and abs(shift - its_shift) < 1.0:
                return ahead
        self._measured[device] = (_measure_clock(directory), now, shift)
        return self._measured[device][0]


_clock = _FilesystemClock()


def _measure_clock(directory: Path) -> float:
    probe = directory / f".clock-{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        probe.touch(exist_ok=False)
        ahead = probe.stat().st_mtime - time.time()
        probe.unlink()
    except OSError:
        return 0.0
    return ahead
