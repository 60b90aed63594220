"""Jobs in the foreground: child processes of the command that waits for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from rldsl.launch.jobs import JobMaker
from rldsl.launch.local import STOPPED, LocalRun, exit_reason
from rldsl.launch.observer import Ending, FollowedSession
from rldsl.launch.submit import packs_of
from rldsl.plan.existing import PlannedSession
from rldsl.spec.launcher import Local

POLL_SECONDS = 0.2


class ForegroundJobs:
    """Sessions that are trained by processes of this machine while the command waits. A `JobGroup`."""

    def __init__(
        self,
        sessions: Sequence[PlannedSession],
        maker: JobMaker,
        runs: Path,
        launcher: Local,
        until: int | None = None,
    ) -> None:
        self.runs = runs
        self.until = until
        self.processes = LocalRun([maker.job(pack, until) for pack in packs_of(sessions, launcher)], launcher)
        self._planned = {planned.id: planned for planned in sessions}
        self._followed: dict[str, FollowedSession] = {}
        self._stopping = False

    @property
    def active(self) -> bool:
        return self.processes.active

    @property
    def running(self) -> Collection[FollowedSession]:
        return self._followed.values()

    @property
    def crashed(self) -> bool:
        return self.processes.crashed

    def poll(self) -> list[Ending]:
        ended = self.processes.poll()
        for id in (id for job in self.processes.running for id in job.sessions):
            if id not in self._followed:
                self._followed[id] = FollowedSession.start(self._planned[id], self.runs)
        for session in self._followed.values():
            session.read()
        return [self._ending(id, self.processes.exit_codes[job]) for job in ended for id in job.sessions]

    def pause(self) -> float:
        return POLL_SECONDS

    def stop(self, requests: int) -> bool:
        """The first request asks every session to checkpoint and stop, the second kills them."""
        self._stopping = True
        if requests == 1:
            self.processes.stop()
        else:
            self.processes.kill()
        return True

    def abort(self) -> None:
        self.processes.stop()

    def _ending(self, id: str, code: int) -> Ending:
        session = self._followed.pop(id)
        session.read()
        state = session.directory.read_state()
        if state.state == "failed":
            return Ending(session, state.state, state.reason or exit_reason(code), session.last_log_lines())
        if state.reached(self.until) or self._stopping or code == STOPPED:
            return Ending(session, state.state)
        return Ending(session, state.state, exit_reason(code), session.last_log_lines())
