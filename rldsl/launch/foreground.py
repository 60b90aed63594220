"""Jobs in the foreground: child processes of the command that waits for them."""

from __future__ import annotations

import signal
from collections.abc import Collection, Sequence
from pathlib import Path

from rldsl.launch.fill import packs_of
from rldsl.launch.initial import fetch_initial
from rldsl.launch.jobs import Job, JobMaker
from rldsl.launch.local import LocalRun
from rldsl.launch.observer import Ending, FollowedSession
from rldsl.launch.process_end import STOPPED
from rldsl.plan.after import Stage, obstacle
from rldsl.plan.existing import planned_session
from rldsl.spec.launcher import Local
from rldsl.store.stop_requests import StopRequests

POLL_SECONDS = 0.2


class ForegroundJobs:
    """Sessions that are trained by processes of this machine while the command waits. A `JobGroup`."""

    def __init__(
        self,
        stages: Sequence[Stage],
        maker: JobMaker,
        runs: Path,
        launcher: Local,
        until: int | None = None,
    ) -> None:
        self.runs = runs
        self.until = until
        self._requests = StopRequests(runs)
        jobs = {index: self._jobs(stage, maker, launcher) for index, stage in enumerate(stages)}
        self._held = [(stage, jobs[index]) for index, stage in enumerate(stages) if stage.needs]
        """Stages that wait for sessions, and their jobs."""
        first = [job for index, stage in enumerate(stages) if not stage.needs for job in jobs[index]]
        later = [job.resources for _, held in self._held for job in held]
        self.processes = LocalRun(first, launcher, later)
        self._planned = {planned.id: planned for stage in stages for planned in stage.sessions}
        self._followed: dict[str, FollowedSession] = {}
        self._stopping = False
        self._blocked = False

    def _jobs(self, stage: Stage, maker: JobMaker, launcher: Local) -> list[Job]:
        return [maker.job(pack, self.until) for pack in packs_of(stage.sessions, launcher)]

    @property
    def active(self) -> bool:
        return self.processes.active or bool(self._held)

    @property
    def running(self) -> Collection[FollowedSession]:
        return self._followed.values()

    @property
    def crashed(self) -> bool:
        """Whether a process ended with an error, or sessions could not start because others are not done."""
        return self.processes.crashed or self._blocked

    def poll(self) -> list[Ending]:
        if requested := self._requests.new():
            self._drop_waiting(requested)
        ended = self.processes.poll()
        blocked = self._start_held() if self._held else []
        for id in (id for job in self.processes.running for id in job.sessions):
            if id not in self._followed:
                self._followed[id] = FollowedSession.start(self._planned[id], self.runs)
        for session in self._followed.values():
            session.read()
        return [*(self._ending(id, job) for job in ended for id in job.sessions), *blocked]

    def _drop_waiting(self, requested: set[str]) -> None:
        """Drops jobs with sessions that somebody else's `stop` named before they were started."""
        self.processes.stop(job for job in self.processes.waiting if not requested.isdisjoint(job.sessions))
        held = [(stage, [job for job in jobs if requested.isdisjoint(job.sessions)]) for stage, jobs in self._held]
        self._held = [(stage, jobs) for stage, jobs in held if jobs]

    def _start_held(self) -> list[Ending]:
        """Lets those stages start whose needs are done, and gives up those whose needs are no longer trained."""
        jobs = (*self.processes.waiting, *self.processes.running, *(job for _, held in self._held for job in held))
        going = {id for job in jobs for id in job.sessions}
        endings, held = [], self._held
        self._held = []
        for stage, waiting in held:
            needs = [planned_session(one.row, one.seed, self.runs) for one in stage.needs]
            unfinished = [one for one in needs if one.state != "done"]
            if not unfinished:
                fetch_initial(stage.sessions, self.runs)
                self.processes.waiting.extend(waiting)
            elif (reason := obstacle(unfinished, going)) is None:
                self._held.append((stage, waiting))
            else:
                self._blocked = True
                sessions = [FollowedSession.start(planned, self.runs) for planned in stage.sessions]
                endings += [Ending(session, session.planned.state, reason) for session in sessions]
        return endings

    def pause(self) -> float:
        return POLL_SECONDS

    def stop(self, requests: int) -> bool:
        """The first request asks every session to checkpoint and stop, the second kills them."""
        self._stopping = True
        self._held = []
        if requests == 1:
            self.processes.stop()
        else:
            self.processes.kill()
        return True

    def abort(self) -> None:
        self.processes.stop()

    def _ending(self, id: str, job: Job) -> Ending:
        session = self._followed.pop(id)
        session.read()
        state = session.directory.read_state()
        code, reason = self.processes.exit_codes[job], self.processes.reasons[job]
        if state.state == "failed":
            return Ending(session, state.state, state.reason or reason, session.last_log_lines())
        if state.reached(self.until) or code == STOPPED or self._stopped(code):
            return Ending(session, state.state)
        return Ending(session, state.state, reason, session.last_log_lines())

    def _stopped(self, code: int) -> bool:
        """Whether a process ended because the user asked for it, before its own handlers were installed or by force."""
        return self._stopping and code in (0, -signal.SIGTERM, -signal.SIGKILL if self.processes.killed else 0)
