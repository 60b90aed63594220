"""Runs the program in a pseudo terminal: its screen, its CPU time and its memory."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyte


class Terminal:
    """A process in a pseudo terminal; a thread reads what it draws."""

    def __init__(self, *arguments: object, columns: int = 120, lines: int = 40, cwd: Path | None = None) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._lock = threading.Lock()
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONDONTWRITEBYTECODE": "1"}
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from rldsl.cli import run; run()", *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            cwd=cwd,
            start_new_session=True,
        )
        os.close(slave)
        self.bytes = 0
        self.raw = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                select.select([self.master], [], [])
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            self.bytes += len(data)
            self.raw += data
            with self._lock:
                self._stream.feed(data)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        with self._lock:
            self.screen.resize(lines, columns)

    @property
    def text(self) -> str:
        with self._lock:
            return "\n".join(self.screen.display)

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait(self, shows: Callable[[str], bool], seconds: float = 60.0) -> float:
        """Waits until the screen shows something; returns how long that took."""
        began = time.perf_counter()
        while not shows(self.text):
            assert self.process.poll() is None, f"the program ended:\n{self.text}"
            assert time.perf_counter() - began < seconds, f"never shown; the screen:\n{self.text}"
            time.sleep(0.01)
        return time.perf_counter() - began

    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def megabytes(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss / 1e6)

    def waited(self) -> float:
        """Seconds for which its main thread was runnable but waited for a CPU."""
        try:
            return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1]) / 1e9
        except OSError:
            return 0.0

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self.master)
