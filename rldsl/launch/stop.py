"""Asking a running session to stop: it checkpoints, and `resume` goes on."""

from __future__ import annotations

import os
import signal

from rldsl.store.claim import read_heartbeat
from rldsl.store.processes import host_name
from rldsl.store.session_dir import SessionDir


def holder(directory: SessionDir) -> tuple[str, int] | None:
    """Host and process that hold a session, by its heartbeat; the other members of its pack have the same."""
    beat = read_heartbeat(directory.alive) or {}
    host, pid = beat.get("host"), beat.get("pid")
    return (host, pid) if isinstance(host, str) and isinstance(pid, int) else None


def ask_to_stop(directory: SessionDir) -> str | None:
    """Signals the process of a session on this machine; a sentence if it could not be asked."""
    held = holder(directory)
    if held is None:
        return f"{directory.id} does not run any more"
    host, pid = held
    if host != host_name():
        return f"{directory.id} runs on {host}: stop it there"
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return f"{directory.id} does not run any more"
    except PermissionError:
        return f"{directory.id} belongs to somebody else"
    return None
