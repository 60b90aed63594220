"""Measures the monitor under load: `python -m tests.monitor.load [SESSIONS] [WRITERS]`, by default 5,000 and 50.

The program runs in a pseudo terminal. CPU time is that of its process as counted by the system; the time to the first
paint is also given without the time in which the process waited for a CPU.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rldsl.store.metrics import MetricsWriter
from tests.monitor.sample_sessions import COLUMNS, cartpole, live_writers, make_many, row, running, sessions_of
from tests.monitor.terminal import Terminal

SECONDS = 15.0
"""Duration of each measurement of CPU time."""
PROBES = 8


@dataclass(frozen=True)
class Measurements:
    """Times in seconds; idle and busy are CPU time as a share of one core."""

    sessions: int
    writers: int
    first_paint: float
    first_paint_without_waiting: float
    all_read: float
    idle: float
    busy: float
    slowest_update: float
    megabytes_after_reading: float
    megabytes_at_the_end: float

    def __str__(self) -> str:
        unwaited = f"{self.first_paint_without_waiting:.2f} s without waiting for a CPU"
        grown = f"{self.megabytes_at_the_end:.0f} MB at the end"
        lines = [
            f"{self.sessions:,} sessions on disk and {self.writers} that write a log point every second",
            f"first paint       {self.first_paint:6.2f} s, {unwaited}",
            f"all read          {self.all_read:6.2f} s",
            f"idle              {self.idle:6.1%} of a core",
            f"with writers      {self.busy:6.1%} of a core",
            f"slowest update    {self.slowest_update:6.2f} s after the log point, of {PROBES}",
            f"memory            {self.megabytes_after_reading:6.0f} MB once all is read, {grown}",
        ]
        return "\n".join(lines)


def cpu_share(terminal: Terminal, seconds: float) -> float:
    """CPU time per second of wall-clock time."""
    before, began = terminal.cpu(), time.perf_counter()
    time.sleep(seconds)
    return (terminal.cpu() - before) / (time.perf_counter() - began)


def slowest_update(terminal: Terminal, probe: MetricsWriter) -> float:
    """Writes log points and measures how long each takes to appear on the screen."""
    slowest = 0.0
    for number in range(PROBES):
        value = 7000.25 + number
        probe.write(row(30_000 + number * 100, value))
        slowest = max(slowest, terminal.wait(lambda text, value=value: f"{value:.1f}" in text))
        time.sleep(0.37)
    return slowest


def measure(runs: Path, sessions: int, writers: int, seconds: float = SECONDS) -> Measurements:
    """Creates the sessions, starts the program and measures it."""
    make_many(runs, sessions)
    with running(runs, sessions_of(cartpole("a-probe").seeds(1))[0]) as directory:
        terminal = Terminal("watch", runs)
        try:
            terminal.wait(lambda text: "1 Runs" in text and "state" in text)
            paint, waited = time.perf_counter() - terminal.began, terminal.waited()
            terminal.wait(lambda text: f"{sessions + 1:,} sessions" in text and "reading" not in text)
            read = time.perf_counter() - terminal.began
            time.sleep(3)
            memory = terminal.megabytes()
            idle = cpu_share(terminal, seconds)
            with live_writers(runs, writers):
                terminal.wait(lambda text: f"{sessions + writers + 1:,} sessions" in text)
                busy = cpu_share(terminal, seconds)
                slowest = slowest_update(terminal, MetricsWriter(directory.metrics, COLUMNS))
            return Measurements(
                sessions, writers, paint, paint - waited, read, idle, busy, slowest, memory, terminal.megabytes()
            )
        finally:
            terminal.close()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as directory:
        print(measure(Path(directory), *(numbers + [5000, 50][len(numbers) :])))
