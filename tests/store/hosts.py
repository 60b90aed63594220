"""Other hosts: processes in namespaces of their own, which share the directories of sessions but not their locks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rldsl.store.session_dir import SessionDir
from tests.project import ROOT

UNSHARE = ("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")


def _namespaces() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


other_hosts = pytest.mark.skipif(not _namespaces(), reason="namespaces need root")


@dataclass
class Host:
    """A process on a host of its own."""

    process: subprocess.Popen[str]

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def signal(self, number: signal.Signals) -> None:
        """Signals the process inside, not `unshare`, which waits for it."""
        (child,) = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        os.kill(int(child), number)


class Hosts:
    """Starts processes on other hosts; the lock of the session is another file on each."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[str]] = []

    def start(self, session: SessionDir, name: str, script: str, *arguments: object) -> Host:
        """Runs a script with the directory of the session, the name of the host and these arguments."""
        lock = session.path.parent / f"lock-{name}"
        session.path.mkdir(parents=True, exist_ok=True)
        for path in (lock, session.lock):
            path.touch()
        shell = f'hostname {name}; mount --bind "{lock}" "{session.lock}"; exec "$@"'
        words = ["sh", sys.executable, "-c", script, str(session.path), name, *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [*UNSHARE, "sh", "-c", shell, *words], stdout=subprocess.PIPE, text=True, env=environment
        )
        self.started.append(process)
        return Host(process)

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()
