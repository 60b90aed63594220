"""`train --debug`: trains in this process, one session after the other, also those that failed before."""

from __future__ import annotations

import traceback
from dataclasses import replace
from importlib import import_module

from rldsl.cli.load import load_classes
from rldsl.cli.tables import echo, escape
from rldsl.launch.initial import fetch_initial
from rldsl.launch.prepare import prepare_stages
from rldsl.launch.run import RunRequest
from rldsl.launch.select import select_sessions
from rldsl.plan.after import in_order
from rldsl.report.words import count
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Local
from rldsl.spec.session import Session
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir


def debug(request: RunRequest) -> int:
    """Trains the sessions of a plan here, also those that failed before, until one fails; then it returns 1.

    An exception in an agent or environment is raised; one that would look like a mistake of the command is printed.
    """
    if request.detach or not isinstance(request.launcher, Local):
        raise SpecError("--debug trains in this process: it cannot be combined with --detach or another launcher")
    request = replace(request, states=[*request.states, "failed"])
    existing = request.settle()
    selected = select_sessions(request.plan, existing, request.states).sessions
    ordered = prepare_stages(in_order(request.plan, selected, existing), existing)
    sessions = [planned for stage in ordered for planned in stage.sessions]
    turns = ", one after the other" if len(sessions) > 1 else ""
    echo(f"training {count(len(sessions), 'session')} in this process{turns}; breakpoint() works")
    if request.file is not None:
        load_classes(request.file)
    for planned in sessions:
        fetch_initial([planned], request.runs)
        outcome = _train(planned.row.session(planned.seed), request)
        echo(f"{outcome}  {escape(planned.row.experiment)} seed {planned.seed}")
        if outcome == "failed":
            return 1
    return 0


def _train(session: Session, request: RunRequest) -> str:
    """Trains a session; returns how it ended."""
    train_here = import_module("rldsl.train.debug").train_here  # torch is needed here, and only here
    directory = SessionDir(request.runs / session.directory)
    before = _failed_at(directory)
    any_code = request.other_code == "continue"
    try:
        (outcome,) = train_here([session], request.runs, request.file, request.command, any_code)
    except (SpecError, StoreError, OSError, RecursionError, MemoryError):
        if _failed_at(directory) == before:  # it was refused, not trained
            raise
        traceback.print_exc()
        return "failed"
    return str(outcome)


def _failed_at(directory: SessionDir) -> float | None:
    state = directory.read_state()
    return state.last_time if state.state == "failed" else None
