"""Processes that take turns on one core: each runs for half a second while the others are paused.

The speed of a machine changes from minute to minute. Processes that take short turns are affected alike.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

TURN_SECONDS = 0.5

Span = tuple[float, float]
"""Start and end by `time.perf_counter`, which is one clock for all processes."""


@dataclass
class Training:
    """A process group, and the folder of its output."""

    process: subprocess.Popen[bytes]
    folder: Path
    pauses: list[Span] = field(default_factory=list)
    stopped: float = 0.0
    """When it was paused last."""

    @classmethod
    def start(cls, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> Training:
        folder.mkdir()
        with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                command, cwd=folder, env=env, stdout=stdout, stderr=stderr, start_new_session=True
            )
        return cls(process, folder)

    @property
    def done(self) -> bool:
        return self.process.poll() is not None

    def pause(self) -> None:
        self.stopped = time.perf_counter()
        self._signal(signal.SIGSTOP)

    def resume(self, seconds: float) -> None:
        """Runs for this long, or until it ends."""
        self.pauses.append((self.stopped, time.perf_counter()))
        self._signal(signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def end(self) -> None:
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def result(self) -> subprocess.CompletedProcess[str]:
        stdout, stderr = ((self.folder / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, stdout, stderr)


def take_turns(trainings: Sequence[Training]) -> None:
    """Returns when all have ended; an exception ends all of them."""
    try:
        for one in trainings:
            one.pause()
        while under_way := [one for one in trainings if not one.done]:
            for one in under_way:
                one.resume(TURN_SECONDS)
                if not one.done:
                    one.pause()
    finally:
        for one in trainings:
            one.end()


def active_seconds(start: float, end: float, pauses: Iterable[Span]) -> float:
    """From start to end, without the pauses."""
    return end - start - sum(max(0.0, min(end, until) - max(start, since)) for since, until in pauses)
