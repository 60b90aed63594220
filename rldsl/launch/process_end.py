"""How a child process ended, in words, also when it could not say so itself."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path

from rldsl.store.session_dir import SessionDir

STOPPED = 3
"""Exit code of `rldsl.train` when it was asked to stop; the session can be resumed."""


def exit_reason(code: int) -> str:
    """`exit 1`, or `killed by SIGKILL` for -9."""
    return f"exit {code}" if code >= 0 else f"killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """`SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_reason(code: int, oom_kills_before: int | None = None) -> str:
    """`exit_reason`, with the usual cause of SIGKILL: the kernel ran out of memory.

    `oom_kills_before` is `oom_kills()` when the process started: if it has grown, that was the cause.
    """
    if code != -signal.SIGKILL:
        return exit_reason(code)
    certain = oom_kills_before is not None and oom_kills() > oom_kills_before
    return f"{exit_reason(code)} ({'out of memory' if certain else 'out of memory?'})"


def oom_kills() -> int:
    """How many processes the kernel has killed for lack of memory since it was booted; 0 if it does not tell."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def journal_crash(directories: Iterable[Path], pid: int, code: int, reason: str) -> None:
    """Journals the end of a process that neither finished nor stopped on request, for each of its sessions."""
    if code not in (0, STOPPED):
        for directory in directories:
            SessionDir(directory).record_crash(pid, reason)
