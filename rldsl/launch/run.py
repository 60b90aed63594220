"""Running a plan: select sessions, freeze the plan, pack, start or submit, follow. The same for every launcher."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rldsl.launch.backend import Refused
from rldsl.launch.follow import follow, stop_signals
from rldsl.launch.foreground import ForegroundJobs
from rldsl.launch.jobs import JobMaker
from rldsl.launch.observer import Observer
from rldsl.launch.queued import QueuedJobs
from rldsl.launch.queues import Queues
from rldsl.launch.select import TRAIN, select_sessions
from rldsl.launch.submit import Submitter, reconcile
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.spec.launcher import Launcher, Local
from rldsl.store.errors import writing
from rldsl.store.plan_file import PLANS
from rldsl.store.session_state import State


@dataclass(frozen=True)
class RunRequest:
    """Which sessions of a plan to run. Where they run is the plan's `launcher`."""

    plan: Plan
    runs: Path
    file: Path
    """The experiment file, for the classes that it defines."""
    command: Sequence[str]
    """The command of the user, for the provenance of the sessions."""
    states: Collection[State] = TRAIN
    """States of the sessions to run: `select.TRAIN` or `select.RESUME`."""
    detach: bool = False
    """Return once the jobs are submitted."""
    cancel_stale: bool = False
    """Cancel jobs of the plan's experiments that the plan no longer contains."""

    @property
    def launcher(self) -> Launcher:
        return self.plan.launcher


@dataclass(frozen=True)
class RunResult:
    """How a run ended. Finished sessions may have failed: their states are in the run directory."""

    outcome: Literal["finished", "detached", "stopped", "unfollowed"]
    """`stopped`: the user stopped the sessions; `unfollowed`: the user left, the jobs continue."""
    started: int = 0
    """Sessions that were started or submitted."""
    problem: bool = False
    """Whether jobs were refused, crashed or disappeared."""


def run_plan(request: RunRequest, observer: Observer) -> RunResult:
    """Runs the sessions of a plan and reports to the observer; returns when all have ended, unless detached."""
    launcher = request.launcher
    if isinstance(launcher, Local) and not request.detach:
        return _run_in_foreground(request, launcher, observer)
    return _run_in_queue(request, observer)


def _run_in_foreground(request: RunRequest, launcher: Local, observer: Observer) -> RunResult:
    selection = select_sessions(request.plan, Existing(request.runs), request.states)
    observer.skipped(selection.running, selection.failed)
    if not selection.sessions:
        return RunResult("finished")
    with stop_signals() as stop:
        plan = freeze_plan(request.plan, request.runs)
        maker = JobMaker(plan.resolve(), request.runs.resolve(), request.file.resolve(), request.command)
        jobs = ForegroundJobs(selection.sessions, maker, request.runs, launcher)
        follow(jobs, observer, stop)
    return RunResult("stopped" if stop.count else "finished", len(selection.sessions), jobs.crashed)


def _run_in_queue(request: RunRequest, observer: Observer) -> RunResult:
    queues = Queues(request.runs)
    queues.fetch(queues.of_trials({row.id for row in request.plan.rows()}))
    states = (*request.states, "running")  # a running session may be one of the queue's, to be followed
    here = request.launcher.same_python
    selection = select_sessions(request.plan, Existing(request.runs), states, here=here)
    observer.skipped(selection.running, selection.failed)
    reconciled = reconcile(request.plan, selection.sessions, queues)
    missing = [planned for planned in reconciled.missing if planned.state != "running"]
    if reconciled.live:
        observer.already_queued(len(reconciled.live))
    if reconciled.stale:
        refusals = queues.cancel(reconciled.stale) if request.cancel_stale else []
        observer.stale_jobs(reconciled.stale, request.cancel_stale, refusals)
    refused = bool(missing) and not _submit(request, missing, observer)
    if request.detach:
        return RunResult("detached", len(missing), refused)
    followed = [*missing, *(planned for planned in selection.sessions if planned.id in reconciled.live)]
    with stop_signals() as stop:
        jobs = QueuedJobs(followed, request.runs)
        follow(jobs, observer, stop)
    return RunResult("unfollowed" if stop.count else "finished", len(missing), refused or jobs.lost > 0)


def _submit(request: RunRequest, sessions: Sequence[PlannedSession], observer: Observer) -> bool:
    """Submits jobs for sessions; returns whether the queue accepted all of them."""
    plan = freeze_plan(request.plan, request.runs)
    submitter = Submitter(plan, request.runs, request.file, request.command, request.launcher)
    try:
        records = submitter.submit(sessions)
    except Refused as error:
        if not error.ids:
            raise
        observer.refused(len(error.ids), str(error))
        return False
    observer.submitted(len(sessions), records, request.launcher.kind)
    return True


def freeze_plan(plan: Plan, runs: Path) -> Path:
    """Saves the plan below the run directory: jobs receive a file and session ids, never a live object."""
    folder = runs / PLANS
    with writing(runs):
        folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"
    plan.save(path)
    return path
