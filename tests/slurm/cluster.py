"""A real SLURM cluster for the tests, started by scripts of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import psutil

HERE = Path(__file__).parent
PORTS = 100
"""From the controller's on, that a cluster takes."""


class Cluster:
    """A controller, accounts, and two nodes of four cores and two GPUs that are none."""

    def __init__(self) -> None:
        self.lab = Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))  # short: sockets are in it

    def up(self) -> None:
        port = {"SLURM_LAB": str(self.lab), "SLURM_LAB_PORT": str(_free_ports())}
        done = subprocess.run([HERE / "up.sh"], env={**os.environ, **port}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        os.environ["SLURM_CONF"] = str(self.lab / "etc" / "slurm.conf")

    def down(self) -> None:
        subprocess.run([HERE / "down.sh"], env={**os.environ, "SLURM_LAB": str(self.lab)}, check=False)
        os.environ.pop("SLURM_CONF", None)
        shutil.rmtree(self.lab, ignore_errors=True)

    def ask(self, *command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    def queue(self) -> dict[str, str]:
        """The state of each job that waits or runs, by its id."""
        lines = self.ask("squeue", "--noheader", "--array", "--format=%i %T").splitlines()
        return dict(line.split() for line in lines)

    def crash(self, node: str, job: str) -> None:
        """Ends a node with all that it runs of a job, without a word; the controller notices."""
        os.kill(int((self.lab / "run" / f"slurmd-{node}.pid").read_text()), signal.SIGKILL)
        step = f"[{job.partition('_')[0]}."
        for process in psutil.process_iter(["name", "cmdline"]):
            if process.info["name"] == "slurmstepd" and step in " ".join(process.info["cmdline"]):
                for one in (process, *process.children(recursive=True)):
                    one.kill()
        self.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=crashed")

    def revive(self, node: str) -> None:
        self.ask("/usr/sbin/slurmd", "-N", node)

    def logs(self) -> str:
        """What the daemons have written."""
        return "".join(path.read_text(errors="replace") for path in self.lab.glob("log/*.log"))


def possible() -> bool:
    """Whether a cluster can be started here: as root, from Debian's packages or with SLURM there already."""
    installed = all(shutil.which(name, path=f"/usr/sbin:{os.environ['PATH']}") for name in ("slurmctld", "mariadbd"))
    return os.getuid() == 0 and (installed or shutil.which("apt-get") is not None)


def _free_ports() -> int:
    for first in range(20_000, 30_000, PORTS):
        if all(_is_free(first + offset) for offset in (0, 1, 11, 12)):
            return first
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
