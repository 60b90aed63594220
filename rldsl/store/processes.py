"""Identifies processes by machine, pid and start time, because pids are reused."""

from __future__ import annotations

import os
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple


def host_name() -> str:
    return os.uname().nodename


class ProcessId(NamedTuple):
    """One process, on this machine or another."""

    host: str
    pid: int
    start_time: float
    machine: str | None = None
    """Boot and pid namespace, in which pids are unique; None if an earlier version recorded the process."""

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """A process of this machine; None if it has ended."""
        started = start_time(pid)
        return None if started is None else cls(host_name(), pid, started, machine_id())

    @classmethod
    def parse(cls, data: Any) -> ProcessId | None:
        """The inverse of `data`; None for anything else."""
        if not isinstance(data, dict):
            return None
        host, pid, started, machine = (data.get(name) for name in cls._fields)
        if not isinstance(host, str) or not isinstance(machine, str | None):
            return None
        if type(pid) is not int or type(started) not in (int, float) or not 0 < pid < 2**31:
            return None
        return cls(host, pid, float(started or 0.0), machine)

    def data(self) -> dict[str, Any]:
        """As JSON, part of a heartbeat or of a record."""
        return self._asdict()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def here(self) -> bool:
        """Whether it is a process of this machine since it was booted, so that its pid means something."""
        return self.host == host_name() and self.machine in (None, machine_id())

    @property
    def alive(self) -> bool:
        """Whether it runs on this machine; not known, and False, for a process of another one."""
        return self.here and start_time(self.pid) == self.start_time

    def send_signal(self, number: signal.Signals) -> bool:
        """Signals the process, never another one that has got its pid; returns False if it has ended."""
        try:
            fd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        except OSError:
            return False
        try:
            if not self.alive:
                return False
            if fd is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            return False
        finally:
            if fd is not None:
                os.close(fd)
        return True


@cache
def machine_id() -> str | None:
    """Identifies this boot of this machine and, in a container, its pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 (not a path)
    except OSError:
        return None


def start_time(pid: int) -> float | None:
    """When a process of this host started, on a monotonic clock; None if it has ended or is a zombie."""
    return _linux_start_time(pid) if sys.platform == "linux" else _portable_start_time(pid)


def _linux_start_time(pid: int) -> float | None:
    """Seconds since boot, field 22 of /proc/<pid>/stat. The name in field 2 may contain spaces but ends with `)`."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else int(fields[18]) / os.sysconf("SC_CLK_TCK")


def _portable_start_time(pid: int) -> float | None:
    import psutil  # type: ignore[import-untyped]

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.Error:
        return None
