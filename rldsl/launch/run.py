"""Running a plan: select sessions, freeze the plan, pack, start or submit, follow. The same for every launcher."""

from __future__ import annotations

from pathlib import Path

from rldsl.launch.devices import has_gpus, refuse_devices
from rldsl.launch.follow import follow, stop_signals
from rldsl.launch.foreground import ForegroundJobs
from rldsl.launch.jobs import JobMaker
from rldsl.launch.observer import Observer
from rldsl.launch.prepare import prepare_stages
from rldsl.launch.queue_run import QueueRun
from rldsl.launch.run_request import RunRequest, RunResult, freeze_plan, tell_skipped
from rldsl.launch.select import select_sessions
from rldsl.plan.after import stages
from rldsl.plan.existing import PlannedSession
from rldsl.spec.launcher import Local
from rldsl.store.session_dir import SessionDir

__all__ = ["RunRequest", "RunResult", "freeze_plan", "run_plan"]


def run_plan(request: RunRequest, observer: Observer) -> RunResult:
    """Runs the sessions of a plan and reports to the observer; returns when all have ended, unless detached."""
    launcher = request.launcher
    if isinstance(launcher, Local) and not request.detach:
        return _run_in_foreground(request, launcher, observer)
    return QueueRun(request, observer).run()


def _run_in_foreground(request: RunRequest, launcher: Local, observer: Observer) -> RunResult:
    existing = request.settle()
    selection = select_sessions(request.plan, existing, request.states)
    tell_skipped(selection, observer)
    if not selection.sessions:
        return RunResult("finished")
    refuse_devices((planned.row.trial for planned in selection.sessions), launcher)
    ordered = prepare_stages(stages(request.plan, selection.sessions, existing), existing)
    with stop_signals() as stop:
        plan = freeze_plan(request.plan, request.runs)
        paths = (plan.resolve(), request.runs.resolve(), request.file and request.file.resolve())
        maker = JobMaker(*paths, request.command, gpu=has_gpus(launcher), any_code=request.other_code == "continue")
        jobs = ForegroundJobs(ordered, maker, request.runs, launcher)
        follow(jobs, observer, stop)
    if not stop.count:
        return RunResult("finished", len(selection.sessions), jobs.crashed)
    ended = all(_has_ended(planned, request.runs) for planned in selection.sessions)
    return RunResult("finished" if ended else "stopped", len(selection.sessions), jobs.crashed and not ended)


def _has_ended(planned: PlannedSession, runs: Path) -> bool:
    """Whether a session needs no other attempt: a request to stop may come when it has just ended."""
    return SessionDir(runs / planned.directory).read_state().state in ("done", "failed")
