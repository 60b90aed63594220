"""The packs of a search as processes of this machine."""

from __future__ import annotations

import json
import signal
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rldsl.launch import machine
from rldsl.launch.jobs import Job, JobMaker, Resources
from rldsl.launch.local import LocalRun
from rldsl.launch.process_end import STOPPED
from rldsl.launch.search_backend import Ended, SearchPack
from rldsl.launch.stop import holder
from rldsl.spec.launcher import Local
from rldsl.store.files import TailReader, append_line
from rldsl.store.processes import ProcessId
from rldsl.store.search_dir import WORKERS, SearchDir
from rldsl.store.session_dir import SessionDir

POLL_SECONDS = 0.2


class LocalSearchBackend:
    """Processes of this machine; those of a driver that was killed live on, and are adopted by the next one."""

    def __init__(
        self, directory: SearchDir, runs: Path, file: Path, command: Sequence[str], launcher: Local, need: Resources
    ) -> None:
        self.runs, self.file, self.command = runs, file, command
        self.processes = LocalRun([], launcher, [need])
        self.records = directory.path / WORKERS
        self._adopted: dict[str, ProcessId] = {}
        """Processes by session."""
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
            worker = _parsed(line)
            process = ProcessId.parse(worker)
            if process is not None and process.alive:
                self._adopted |= dict.fromkeys(wanted.intersection(worker["sessions"]), process)
        for planned in sessions:
            process = holder(SessionDir(self.runs / planned.directory))
            if planned.state == "running" and process is not None and process.alive:
                self._adopted[planned.id] = process

    def start(self, plan: Path, packs: Sequence[SearchPack]) -> None:
        paths = (plan.resolve(), self.runs.resolve(), self.file.resolve())
        maker = JobMaker(*paths, self.command, gpu=bool(machine.gpus()), any_code=True)
        self.processes.waiting.extend(maker.job(pack.sessions, pack.until) for pack in packs)

    def poll(self) -> list[Ended]:
        ended = self.processes.poll()
        self._record(job for job in self.processes.running if job not in self._recorded)
        gone = [id for id, process in self._adopted.items() if not process.alive]
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
        return Ended(id, None if code in (0, STOPPED) else self.processes.reasons[job])

    def _record(self, jobs: Iterable[Job]) -> None:
        """Records processes that have just started, for the next driver if this one is killed."""
        for job in jobs:
            process = ProcessId.of(self.processes.running[job].pid)
            if process is not None:
                append_line(self.records, json.dumps({**process.data(), "sessions": job.sessions}))
            self._recorded.add(job)

    def _signal_adopted(self, number: signal.Signals) -> None:
        for process in set(self._adopted.values()):
            with suppress(PermissionError):
                process.send_signal(number)


def _parsed(line: str) -> dict[str, Any]:
    """A record of a process; empty if the line is damaged."""
    try:
        worker = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return worker if isinstance(worker, dict) and isinstance(worker.get("sessions"), list) else {}
