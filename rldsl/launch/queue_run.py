"""Running a plan in a queue: reconcile it with the jobs that are there, submit what is missing, follow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from rldsl.launch.backend import LimitReached, QueueUnavailable, Refused, backend_for
from rldsl.launch.backlog import read_backlog, update_backlog
from rldsl.launch.code import freeze
from rldsl.launch.devices import refuse_devices
from rldsl.launch.follow import follow, stop_signals
from rldsl.launch.initial import fetch_initial
from rldsl.launch.job_records import newest_records, read_records
from rldsl.launch.observer import Observer
from rldsl.launch.prepare import prepare_stages
from rldsl.launch.queued import QueuedJobs
from rldsl.launch.queues import Queues
from rldsl.launch.run_request import RunRequest, RunResult, freeze_plan, tell_skipped
from rldsl.launch.select import Selection, select_sessions
from rldsl.launch.stop import holder
from rldsl.launch.submission_lock import submission_lock
from rldsl.launch.submit import Reconciled, Submitter, reconcile
from rldsl.launch.transaction import settle_submissions
from rldsl.plan.after import Stage, obstacle, stages
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.spec.errors import SpecError
from rldsl.store.session_dir import SessionDir

END_SECONDS = 180.0
"""How long to wait for jobs that were stopped; sites kill them after their KillWait, 30 seconds by default."""
FIRST_PAUSE, LAST_PAUSE = 1.0, 10.0
"""Seconds between two looks at the queue meanwhile."""


class QueueRun:
    """One command that runs a plan in a queue."""

    def __init__(self, request: RunRequest, observer: Observer) -> None:
        self.request, self.observer, self.runs = request, observer, request.runs
        self.submitter: Submitter | None = None
        self.submitted = 0
        self.refused = False
        self.backlog: dict[str, PlannedSession] = {}
        """Sessions that wait until others have ended: for the limit of the queue, or because they come after them."""

        self._obstacles: dict[str, str | None] = {}

    def run(self) -> RunResult:
        with submission_lock(self.runs, lambda who: self.observer.note(f"{who}: waiting until it has finished")):
            for sentence in settle_submissions(self.runs):
                self.observer.note(sentence)
            followed = self._reconcile_and_submit()
        if self.request.detach:
            return RunResult("detached", self.submitted, self.refused)
        with stop_signals() as stop:
            refill = self._refill if self.backlog else None
            jobs = QueuedJobs(followed, self.runs, refill=refill, obstacle=self._obstacle)
            follow(jobs, self.observer, stop)
        problem = self.refused or jobs.lost > 0
        return RunResult("unfollowed" if stop.count else "finished", self.submitted, problem)

    def _reconcile_and_submit(self) -> list[PlannedSession]:
        """Submits what is missing; returns the sessions to follow."""
        queues, selection, reconciled = self._reconcile()
        if reconciled.ending:
            queues, selection, reconciled = self._wait_for_ends(queues, reconciled)
        tell_skipped(selection, self.observer)
        missing = [planned for planned in reconciled.missing if planned.state != "running"]
        refuse_devices((planned.row.trial for planned in missing), self.request.launcher)
        if elsewhere := [planned for planned in reconciled.missing if planned.state == "running"]:
            self.observer.note(_running_elsewhere(elsewhere, self.runs))
        if reconciled.live:
            self.observer.already_queued(len(reconciled.live))
        if reconciled.stale:
            refusals = queues.cancel(reconciled.stale) if self.request.cancel_stale else []
            self.observer.stale_jobs(reconciled.stale, self.request.cancel_stale, refusals)
        extend = self.request.launcher.same_python  # elsewhere the run directory is not that of the worker
        ordered = prepare_stages(stages(self.request.plan, missing, self.existing), self.existing, extend=extend)
        submitted = [planned for stage in ordered for planned in self._submit_stage(stage)]
        return [*submitted, *(planned for planned in selection.sessions if planned.id in reconciled.live)]

    def _reconcile(self) -> tuple[Queues, Selection, Reconciled]:
        queues, plan = Queues(self.runs), self.request.plan
        queues.fetch(queues.of_trials({row.id for row in chain(plan.rows(), plan.needed())}))
        states = (*self.request.states, "running")  # a running session may be one of the queue's, to be followed
        here = self.request.launcher.same_python
        self.existing = self.request.settle()
        selection = select_sessions(plan, self.existing, states, here=here, also=read_backlog(self.runs))
        return queues, selection, reconcile(plan, selection.sessions, queues)

    def _wait_for_ends(self, queues: Queues, reconciled: Reconciled) -> tuple[Queues, Selection, Reconciled]:
        """Waits until jobs that were stopped, or are completing, have ended; then it is known what to submit."""
        queues.cancel(job.record for job in reconciled.ending.values() if job.state.state != "completing")
        jobs = len({job.record.job_id for job in reconciled.ending.values()})
        have = "s have" if jobs > 1 else " has"
        self.observer.note(f"{jobs:,} job{have} not ended yet: waiting, then submitting again")
        pause, deadline = FIRST_PAUSE, time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)
            queues, selection, reconciled = self._reconcile()
            if not reconciled.ending:
                return queues, selection, reconciled
        words = f"{len(reconciled.ending):,} sessions are still being stopped after {END_SECONDS:.0f} seconds"
        raise QueueUnavailable(f"{words}, nothing was submitted: run this again when `status` no longer shows them so")

    def _submit_stage(self, stage: Stage) -> list[PlannedSession]:
        """Submits sessions, after the jobs of those that they wait for if the queue can do that.

        Otherwise they are kept as a backlog, and not at all if those are no longer trained.
        """
        if not stage.needs:
            return self._submit(stage.sessions)
        launcher, names = self.request.launcher, ", ".join(stage.after)
        if not launcher.results_here:
            raise SpecError(f"{launcher.kind} keeps its results elsewhere: whether {names} is done is not known here")
        live = {id: job.record for id, job in Queues(self.runs).jobs(one.id for one in stage.needs).items() if job.live}
        if reason := obstacle(stage.needs, {*live, *read_backlog(self.runs)}):
            self._give_up(stage.sessions, reason)
            return []
        same_queue = all(one.id in live and live[one.id].spec().queue == launcher.queue for one in stage.needs)
        if same_queue and getattr(backend_for(launcher, self.runs), "dependencies", False):
            return self._submit(stage.sessions, stage.after, [live[one.id].job_id for one in stage.needs])
        how = "the same command submits them then" if self.request.detach else "they are submitted then"
        self._keep(stage.sessions, f"waits for {names}", f"until {names} is done; {how}")
        return []

    def _obstacle(self, planned: PlannedSession) -> str | None:
        """Why a session that comes after others was not started."""
        name = planned.row.experiment
        if name not in self._obstacles:
            (stage,) = stages(self.request.plan, [planned], Existing(self.runs))
            self._obstacles[name] = obstacle(stage.needs, ())
        return self._obstacles[name]

    def _give_up(self, sessions: Sequence[PlannedSession], reason: str) -> None:
        ids = {planned.id for planned in sessions}
        self.refused = True
        self.backlog = {id: planned for id, planned in self.backlog.items() if id not in ids}
        update_backlog(self.runs, (), "", ids)
        self.observer.note(f"{_number(sessions)} {reason}")

    def _keep(self, sessions: Sequence[PlannedSession], reason: str, words: str) -> None:
        """Keeps sessions as a backlog."""
        new = [planned for planned in sessions if planned.id not in self.backlog]
        self.backlog |= {planned.id: planned for planned in sessions}
        update_backlog(self.runs, (planned.id for planned in sessions), reason)
        if new:
            self.observer.note(f"{_number(new)} kept as a backlog {words}")

    def _submit(
        self, sessions: Sequence[PlannedSession], after: Sequence[str] = (), jobs: Sequence[str] = ()
    ) -> list[PlannedSession]:
        """Submits jobs for sessions, to start after these jobs; returns the sessions that the queue has accepted."""
        request = self.request
        if request.file is None:
            raise SpecError("a queue runs a copy of the code: give the experiment file as well, FILE --session ID")
        if self.submitter is None:
            plan, code = freeze_plan(request.plan, self.runs), freeze(request.file, self.runs, request.launcher.include)
            for sentence in code.left_out:
                self.observer.note(sentence)
            any_code = request.other_code == "continue"
            self.submitter = Submitter(plan, self.runs, request.file, request.command, request.launcher, code, any_code)
        try:
            records = self.submitter.submit(sessions, jobs)
        except LimitReached as error:
            return self._keep_backlog(sessions, error)
        except Refused as error:
            if not error.ids:
                raise
            self.refused = True
            self.observer.refused(len(error.ids), str(error))
            return self._accepted(sessions, error.ids)
        accepted = {planned.id for planned in sessions}
        update_backlog(self.runs, (), "", accepted)
        self.backlog = {id: planned for id, planned in self.backlog.items() if id not in accepted}
        self.submitted += len(sessions)
        self.observer.submitted(len(sessions), records, request.launcher.kind)
        if jobs:
            self.observer.note(f"{_number(sessions)} start{'s' * (len(sessions) == 1)} when {', '.join(after)} is done")
        return list(sessions)

    def _keep_backlog(self, sessions: Sequence[PlannedSession], error: LimitReached) -> list[PlannedSession]:
        """Records the sessions that wait for the limit of the queue."""
        accepted = self._accepted(sessions, error.ids)
        ids = {planned.id for planned in accepted}
        first = not any(planned.id in self.backlog for planned in sessions)
        rest = {planned.id: planned for planned in sessions if planned.id not in ids}
        self.backlog = {id: planned for id, planned in self.backlog.items() if id not in ids} | rest
        self.submitted += len(accepted)
        update_backlog(self.runs, rest, str(error), ids)
        if accepted or first:
            words = f"submitted {len(accepted):,} of {len(sessions):,} sessions: {error}"
            more = "the same command submits more as jobs end" if self.request.detach else "the others follow"
            self.observer.note(f"{words}; {more}")
        return accepted

    def _accepted(self, sessions: Sequence[PlannedSession], ids: Sequence[str]) -> list[PlannedSession]:
        records, accepted = newest_records(read_records(self.runs)), set(ids)
        return [one for one in sessions if one.id in records and records[one.id].job_id in accepted]

    def _refill(self) -> list[PlannedSession]:
        """Submits more of the backlog; returns the sessions that the queue has accepted."""
        if not self.backlog:
            return []
        with submission_lock(self.runs):
            queues, waiting = Queues(self.runs), read_backlog(self.runs)  # without those that were stopped
            queues.fetch(queues.of_trials({row.id for row in self.request.plan.needed()}))
            self.backlog = {id: planned for id, planned in self.backlog.items() if id in waiting}
            ordered = stages(self.request.plan, list(self.backlog.values()), Existing(self.runs))
            for stage in ordered:
                if not stage.needs:
                    fetch_initial(stage.sessions, self.runs)
            return [planned for stage in ordered for planned in self._submit_stage(stage)]


def _running_elsewhere(sessions: Sequence[PlannedSession], runs: Path) -> str:
    """A sentence about sessions that a process trains which is no job of the queue."""
    holders = (holder(SessionDir(runs / planned.directory)) for planned in sessions)
    hosts = ", ".join(sorted({process.host for process in holders if process is not None}))
    return f"{_number(sessions)} running outside of the queue{f' on {hosts}' if hosts else ''}: left alone"


def _number(sessions: Sequence[PlannedSession]) -> str:
    return f"{len(sessions):,} session{'' if len(sessions) == 1 else 's'}"
