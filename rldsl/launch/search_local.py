"""The packs of a search as processes of this machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rldsl.launch.jobs import Job, JobMaker
from rldsl.launch.local import STOPPED, LocalRun, exit_reason
from rldsl.launch.search_backend import Ended, SearchPack
from rldsl.launch.stop import holder
from rldsl.spec.launcher import Local
from rldsl.store.files import TailReader, append_line
from rldsl.store.processes import host_name, is_alive, start_time
from rldsl.store.search_dir import WORKERS, SearchDir
from rldsl.store.session_dir import SessionDir

POLL_SECONDS = 0.2


class LocalSearchBackend:
    """Processes of this machine; those of a driver that was killed live on, and are adopted by the next one."""

    def __init__(
        self, directory: SearchDir, runs: Path, file: Path, command: Sequence[str], launcher: Local, on_gpu: bool
    ) -> None:
        self.runs, self.file, self.command = runs, file, command
        self.processes = LocalRun([], launcher, on_gpu)
        self.records = directory.path / WORKERS
        self._adopted: dict[str, tuple[int, float]] = {}
        """Process id and start time by session."""
        self._recorded: set[Job] = set()

    @property
    def workers(self) -> int:
        return self.processes.parallel

    @property
    def busy(self) -> Collection[str]:
        jobs = (*self.processes.running, *self.processes.waiting)
        return {id for job in jobs for id in job.sessions} | self._adopted.keys()

    def capacity(self) -> int:
        used = len(self.processes.running) + len(self.processes.waiting) + len(set(self._adopted.values()))
        return max(0, self.workers - used)

    def adopt(self, packs: Sequence[SearchPack]) -> None:
        """By the records of started processes, because a new process claims its sessions after some seconds only."""
        sessions = [planned for pack in packs for planned in pack.sessions]
        wanted = {planned.id for planned in sessions}
        for line in TailReader(self.records).read_new():
            worker = json.loads(line)
            if worker["host"] == host_name() and is_alive(worker["pid"], worker["start_time"]):
                self._adopted |= dict.fromkeys(
                    wanted.intersection(worker["sessions"]), (worker["pid"], worker["start_time"])
                )
        for planned in sessions:
            process = holder(SessionDir(self.runs / planned.directory))
            if planned.state == "running" and process is not None and process.host == host_name():
                started = start_time(process.pid)
                self._adopted |= {planned.id: (process.pid, started)} if started is not None else {}

    def start(self, plan: Path, packs: Sequence[SearchPack]) -> None:
        maker = JobMaker(plan.resolve(), self.runs.resolve(), self.file.resolve(), self.command)
        self.processes.waiting.extend(maker.job(pack.sessions, pack.until) for pack in packs)

    def poll(self) -> list[Ended]:
        ended = self.processes.poll()
        self._record(job for job in self.processes.running if job not in self._recorded)
        gone = [id for id, process in self._adopted.items() if not is_alive(*process)]
        for id in gone:
            del self._adopted[id]
        return [*(Ended(id) for id in gone), *(self._ended(id, job) for job in ended for id in job.sessions)]

    def pause(self) -> float:
        return POLL_SECONDS

    def interrupt(self, requests: int) -> bool:
        """The first request asks every session to checkpoint and stop, the second kills them."""
        if requests == 1:
            self.cancel()
        else:
            self.processes.kill()
            self._signal_adopted(signal.SIGKILL)
        return True

    def cancel(self) -> None:
        self.processes.stop()
        self._signal_adopted(signal.SIGTERM)

    def abort(self) -> None:
        self.cancel()

    def _ended(self, id: str, job: Job) -> Ended:
        code = self.processes.exit_codes[job]
        return Ended(id, None if code in (0, STOPPED) else exit_reason(code))

    def _record(self, jobs: Iterable[Job]) -> None:
        """Records processes that have just started, for the next driver if this one is killed."""
        for job in jobs:
            pid = self.processes.running[job].pid
            facts: dict[str, Any] = {"host": host_name(), "pid": pid, "start_time": start_time(pid)}
            append_line(self.records, json.dumps({**facts, "sessions": job.sessions}))
            self._recorded.add(job)

    def _signal_adopted(self, number: signal.Signals) -> None:
        for pid, _ in set(self._adopted.values()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
