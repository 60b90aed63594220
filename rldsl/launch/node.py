"""A job of several packs, on its node: `python -m rldsl.launch.node --cpus N --pack JSON --pack JSON ...`.

Every pack is a process of its own with its cores, its GPU and its log. One that fails does not end the others. A signal
that asks the job to stop reaches all of them; when the queue starts the job again, only unfinished packs are started.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rldsl.launch import machine
from rldsl.launch.process_end import STOPPED, end_reason, journal_crash, oom_kills
from rldsl.launch.worker import ONE_THREAD
from rldsl.store.errors import StoreError
from rldsl.store.files import open_log
from rldsl.store.layout import LOG
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import SessionState

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)
STOPPING = (STOPPED, *(-number for number in SIGNALS))
"""Exit codes of a process that was asked to stop; a signal if its handlers were not installed yet."""
OUTCOMES = {0: "done", STOPPED: "stopped"}
POLL_SECONDS = 0.1
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class NodePack:
    """One process of the job."""

    command: tuple[str, ...]
    directories: tuple[Path, ...]
    attempts: tuple[int, ...]
    until: int | None
    cpus: int
    gpus: int

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> NodePack:
        directories, attempts = tuple(map(Path, data["directories"])), tuple(data["attempts"])
        numbers = (data["until"], int(data["cpus"]), int(data["gpus"]))
        return cls(tuple(data["command"]), directories, attempts, *numbers)

    @property
    def name(self) -> str:
        first = SessionDir(self.directories[0])
        more = len(self.directories) - 1
        return f"{first.id} and {more} more" if more else first.id

    def finished(self) -> bool:
        """Whether its sessions have nothing left to train, or failed in an earlier life of this job."""
        states = [SessionDir(path).read_state() for path in self.directories]
        return all(self._finished(state, before) for state, before in zip(states, self.attempts, strict=True))

    def _finished(self, state: SessionState, before: int) -> bool:
        return state.reached(self.until) or (state.state == "failed" and state.attempts > before)


class Node:
    """The processes of the job. `run` returns when the last one has ended."""

    def __init__(self, packs: Sequence[NodePack], cpus: int) -> None:
        self.packs = packs
        self.cores = _cores(packs, cpus)
        self.gpus = _gpus(packs)
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.exit_codes: dict[int, int] = {}
        self._oom_kills = oom_kills()
        self.asked: int | None = None
        """The signal that asked the job to stop."""

    def run(self) -> int:
        """0 if all packs are done, `STOPPED` if some were asked to stop, otherwise 1."""
        for number in SIGNALS:
            signal.signal(number, self._stop)
        for index, pack in enumerate(self.packs):
            if pack.finished():
                _say(f"{pack.name} is finished already")
            elif self.asked is None:
                self._try_to_start(index, pack)
        if self.asked is not None:
            self._signal_all(self.asked)  # those that were about to start
        while self.running:
            time.sleep(POLL_SECONDS)
            self._poll()
        return self._exit_code()

    def _poll(self) -> None:
        for index, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[index]
                code = self.exit_codes[index] = process.returncode
                reason = end_reason(code, self._oom_kills)
                journal_crash(self.packs[index].directories, process.pid, code, reason)
                _say(f"{self.packs[index].name}: {OUTCOMES.get(code, reason)}")

    def _exit_code(self) -> int:
        codes = self.exit_codes.values()
        if self.asked is not None and any(code in STOPPING for code in codes):
            return STOPPED
        failed = [code for code in codes if code not in (0, STOPPED)]
        return 1 if failed else max(codes, default=0)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        self._signal_all(number)

    def _signal_all(self, number: int) -> None:
        for process in list(self.running.values()):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    def _try_to_start(self, index: int, pack: NodePack) -> None:
        """A pack whose log cannot be written does not keep the others from training."""
        try:
            self.running[index] = self._start(index, pack)
        except StoreError as error:
            self.exit_codes[index] = 1
            _say(f"{pack.name}: {error}")

    def _start(self, index: int, pack: NodePack) -> subprocess.Popen[bytes]:
        directory = pack.directories[0]
        directory.mkdir(parents=True, exist_ok=True)
        with open_log(directory / LOG) as log:
            process = subprocess.Popen(
                pack.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**ONE_THREAD, **os.environ, "CUDA_VISIBLE_DEVICES": self.gpus[index]},
                preexec_fn=_end_with_parent,
            )
        if self.cores[index]:
            with suppress(OSError):
                os.sched_setaffinity(process.pid, self.cores[index])
        return process


def _cores(packs: Sequence[NodePack], cpus: int) -> list[list[int]]:
    """The cores of each process, if the queue has confined this job to its own; otherwise the system chooses."""
    own = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(own) != cpus or sum(pack.cpus for pack in packs) > cpus:
        return [[] for _ in packs]
    first = [sum(pack.cpus for pack in packs[:index]) for index, _ in enumerate(packs)]
    return [own[start : start + pack.cpus] for start, pack in zip(first, packs, strict=True)]


def _gpus(packs: Sequence[NodePack]) -> list[str]:
    """The GPU of each process, by its name in CUDA_VISIBLE_DEVICES; neighbours share one if there are too few."""
    visible = machine.gpus()
    users = [index for index, pack in enumerate(packs) if pack.gpus]
    chosen = [""] * len(packs)
    for position, index in enumerate(users):
        if visible:
            chosen[index] = visible[position * len(visible) // max(len(users), len(visible))]
    return chosen


def _end_with_parent() -> None:
    """A process whose supervisor is killed would train on, while the queue starts its job again elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(line: str) -> None:
    print(f"rldsl: {line}", flush=True)  # noqa: T201 (the log of the job)


def main(arguments: Sequence[str]) -> int:
    """Runs all packs of the job."""
    parser = argparse.ArgumentParser(prog="python -m rldsl.launch.node", description=__doc__)
    parser.add_argument("--cpus", type=int, required=True, help="cores of the job")
    parser.add_argument("--pack", action="append", required=True, type=json.loads, help="a process, as JSON")
    options = parser.parse_args(arguments)
    return Node([NodePack.parse(data) for data in options.pack], options.cpus).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
