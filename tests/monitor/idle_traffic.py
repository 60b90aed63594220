"""Measures what an idle monitor sends to the terminal: `python -m tests.monitor.idle_traffic [SECONDS]`."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.monitor.sample_sessions import cartpole, make_done, running, sessions_of
from tests.monitor.terminal import Terminal


def measure(runs: Path, seconds: float, keys: str = "1", columns: int = 120) -> float:
    """Bytes per second on a screen, with 30 finished sessions and one that runs and writes nothing."""
    os.environ["XDG_STATE_HOME"] = str(runs / ".state")
    for session in sessions_of(cartpole("finished").seeds(30)):
        make_done(runs, session)
    with running(runs, sessions_of(cartpole("alive").frames(123_000).seeds(1))[0]):
        terminal = Terminal("watch", runs, columns=columns)
        try:
            terminal.wait(lambda text: "31 sessions" in text)
            terminal.press(keys)
            time.sleep(3)
            before = terminal.bytes
            time.sleep(seconds)
            return (terminal.bytes - before) / seconds
        finally:
            terminal.close()


if __name__ == "__main__":
    duration = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with tempfile.TemporaryDirectory() as directory:
        for number, name in ((1, "Runs"), (2, "Curves"), (7, "Machine")):
            rate = measure(Path(directory, str(number)), duration, str(number))
            print(f"{name:<8} {rate:6.0f} bytes/s over {duration:.0f} s")
