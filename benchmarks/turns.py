"""Trainings that take turns on one core: each runs for a moment while the others stand still.

A machine's speed changes from minute to minute, with whatever else its host has to do. What runs in turns of half a
second meets the same machine.
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

MOMENT = 0.5
"""Seconds of a turn."""

Span = tuple[float, float]
"""By `time.perf_counter`, which is one clock for all processes."""


@dataclass
class Training:
    """A process, with all that it starts, in a folder that holds what it says."""

    process: subprocess.Popen[bytes]
    folder: Path
    pauses: list[Span] = field(default_factory=list)
    stopped: float = 0.0
    """When it was paused last."""

    @classmethod
    def start(cls, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> Training:
        folder.mkdir()
        with (folder / "stdout").open("wb") as said, (folder / "stderr").open("wb") as complained:
            process = subprocess.Popen(
                command, cwd=folder, env=env, stdout=said, stderr=complained, start_new_session=True
            )
        return cls(process, folder)

    @property
    def done(self) -> bool:
        return self.process.poll() is not None

    def pause(self) -> None:
        self.stopped = time.perf_counter()
        self._signal(signal.SIGSTOP)

    def go_on(self, seconds: float) -> None:
        """Runs for so long, or to its end."""
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
        said, complained = ((self.folder / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, said, complained)


def take_turns(trainings: Sequence[Training]) -> None:
    """Returns when all have ended; whatever ends it before that ends them too."""
    try:
        for one in trainings:
            one.pause()
        while under_way := [one for one in trainings if not one.done]:
            for one in under_way:
                one.go_on(MOMENT)
                if not one.done:
                    one.pause()
    finally:
        for one in trainings:
            one.end()


def active_seconds(start: float, end: float, pauses: Iterable[Span]) -> float:
    """From start to end, without the pauses."""
    return end - start - sum(max(0.0, min(end, until) - max(start, since)) for since, until in pauses)
