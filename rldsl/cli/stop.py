"""Asking running sessions to stop: they checkpoint, and `resume` goes on."""

from __future__ import annotations

import os
import signal
import socket

from rldsl.cli.tables import echo
from rldsl.cli.words import count
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.store.claim import read_heartbeat
from rldsl.store.session_dir import SessionDir


def stop_sessions(plan: Plan, existing: Existing) -> None:
    """Signals the processes of the plan's running sessions on this machine."""
    running = [one for row in plan.rows() for one in existing.standings(row) if one.report.state == "running"]
    asked = sum(_ask(SessionDir(existing.runs / one.directory)) for one in running)
    echo(f"asked {count(asked, 'session')} to checkpoint and stop; `resume` goes on")


def _ask(directory: SessionDir) -> bool:
    beat = read_heartbeat(directory.alive) or {}
    if beat.get("host") != socket.gethostname():
        echo(f"{directory.id} runs on {beat.get('host')}: stop it there")
        return False
    try:
        os.kill(beat["pid"], signal.SIGTERM)
    except ProcessLookupError:
        return False
    return True
