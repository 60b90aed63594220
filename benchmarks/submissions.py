"""What it takes to submit thousands of sessions to SLURM and to ask for their states: CPU seconds, memory, files.

    python -m benchmarks.submissions [--sessions 10000]

SLURM itself is replaced by scripts that accept everything and answer at once, so that only rldsl is measured. Seconds
are those of the CPU: other work on the machine changes them little. Ends with an error if a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

EXPERIMENT = """
from rldsl import Classic, Random, Slurm, experiment, main

cart = experiment("cart").env(Classic("CartPole-v1")).agent(Random()).frames(1000).seeds(SESSIONS)

if __name__ == "__main__":
    main(cart.on(Slurm(members=1)))
"""
COMMANDS = {
    "sbatch": """
id=$(( $(cat {state}/id 2>/dev/null || echo 1000) + 1 )); echo $id > {state}/id
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%.*/\\1/p' "$2")
seq 0 $last | sed "s/.*/${{id}}_&|PENDING|Priority|/" >> {state}/queue
echo $id
""",
    "squeue": "cat {state}/queue 2>/dev/null || true",
    "sacct": "echo 'sacct: error: there are no accounts' >&2; exit 1",
    "scontrol": "echo 'MaxArraySize = 1001'",
}


class Goal(NamedTuple):
    """What a command may take for 10,000 sessions."""

    seconds: float
    megabytes: float


GOALS = {"submit": Goal(20, 150), "status": Goal(4, 150), "status (all running)": Goal(4, 150)}
FILES = 2
"""Files in `.jobs` for each session."""


class Taken(NamedTuple):
    """What a command took."""

    cpu: float
    seconds: float
    megabytes: float
    said: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    sessions = parser.parse_args().sessions
    with tempfile.TemporaryDirectory() as folder:
        return _measure(Path(folder), sessions)


def _measure(root: Path, sessions: int) -> int:
    environment = _stand_ins(root)
    (root / "exp.py").write_text(EXPERIMENT.replace("SESSIONS", str(sessions)))
    taken = {
        "submit": _run(root, environment, "train", "--detach"),
        "status": _run(root, environment, "status"),
    }
    files = sum(len(names) for _, _, names in os.walk(root / "runs" / ".jobs")) + sessions  # and SLURM's output of each
    queue = root / "state" / "queue"
    queue.write_text(queue.read_text().replace("|PENDING|Priority|", "|RUNNING||node1"))
    taken["status (all running)"] = _run(root, environment, "status")
    missed = files > FILES * sessions
    print(f"{sessions:,} sessions, load average {os.getloadavg()[0]:.1f}")
    for name, one in taken.items():
        goal = GOALS[name]
        misses = one.cpu > goal.seconds or one.megabytes > goal.megabytes
        missed |= misses
        words = f"{one.cpu:.1f} s of CPU (goal {goal.seconds:.0f}), {one.megabytes:.0f} MB (goal {goal.megabytes:.0f})"
        print(f"{name}: {words}, {one.seconds:.1f} s{'  MISSED' if misses else ''}")
    print(f"files in .jobs, with SLURM's output of each job: {files / sessions:.2f} a session (goal {FILES})")
    return int(missed)


def _stand_ins(root: Path) -> dict[str, str]:
    """Scripts in place of SLURM's commands, and an environment that finds them."""
    (root / "bin").mkdir()
    (root / "state").mkdir()
    for name, text in COMMANDS.items():
        path = root / "bin" / name
        path.write_text(f"#!/bin/sh\n{text.format(state=root / 'state')}\n")
        path.chmod(0o755)
    return {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "COLUMNS": "160"}


def _run(root: Path, environment: dict[str, str], *words: str) -> Taken:
    """A command and what it took, its children included."""
    began = time.monotonic()
    with (root / "said").open("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "exp.py", *words], cwd=root, env=environment, stdout=said, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed: {text[-2000:]}")
    return Taken(used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024, text)


if __name__ == "__main__":
    sys.exit(main())
