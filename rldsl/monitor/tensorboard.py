"""TensorBoard for chosen sessions, on the loopback interface, until the monitor ends."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.tensorboard import LogDirectory, end, tensorboard_command
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

STARTUP_TIMEOUT = 30.0
"""Seconds to wait for TensorBoard to accept connections."""


class TensorBoard:
    """A TensorBoard process on the loopback interface; it ends with the monitor."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.logs: LogDirectory | None = None

    def start(self, sessions: Sequence[SessionSnapshot], runs: Path) -> str:
        """Starts it for these sessions, replacing an earlier one; returns its URL once it accepts connections."""
        self.end()
        port = _free_port()
        self.logs = LogDirectory()
        self.logs.add([SessionDir(runs / session.path) for session in sessions])
        self.process = subprocess.Popen(
            tensorboard_command(self.logs.path, port=port),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait(port)
        return f"http://127.0.0.1:{port}/"

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + STARTUP_TIMEOUT
        while time.monotonic() < deadline and self.process and self.process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise StoreError("TensorBoard did not start: run `python -m tensorboard.main` to see why")

    def end(self) -> None:
        """Ends the process, if it is running."""
        if self.process is not None:
            end(self.process)
        if self.logs is not None:
            self.logs.close()
        self.process = self.logs = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
