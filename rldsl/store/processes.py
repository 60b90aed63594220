"""Identifies processes by pid and start time, because pids are reused."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def host_name() -> str:
    return os.uname().nodename


def start_time(pid: int) -> float | None:
    """When a process of this host started, on a monotonic clock; None if it has ended or is a zombie."""
    return _linux_start_time(pid) if sys.platform == "linux" else _portable_start_time(pid)


def is_alive(pid: int, started: float) -> bool:
    return start_time(pid) == started


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
