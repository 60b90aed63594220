"""`make faults`: all long fault tests, a few at a time; writes results/faults.json if every one of them has passed.

    python -m tests.faults [--share 0.01] [--jobs 3] [PART ...]

With a share of the cases, or only some parts, the numbers are printed and nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.project import ROOT

RESULTS = ROOT / "results" / "faults.json"
PARTS = {
    "submissions to dstack": ["tests/dstack/test_faults.py"],
    "submissions to SLURM": ["tests/slurm/test_transaction.py::test_a_submitter_may_be_killed_at_any_moment"],
    "searches": ["tests/faults/test_random_kills.py::test_drivers_of_searches"],
    "commands": ["tests/faults/test_random_kills.py::test_commands_in_the_foreground"],
    "supervisors": ["tests/faults/test_random_kills.py::test_supervisors_of_detached_runs"],
    "file operations, off-policy": ["tests/faults/test_file_operations.py", "-k", "dqn or sac or crossq"],
    "file operations, on-policy": ["tests/faults/test_file_operations.py", "-k", "not dqn and not sac and not crossq"],
    "monitor": ["tests/monitor/test_random_events.py", "tests/faults/test_random_kills.py::test_monitors"],
    "fuzz of files": ["tests/faults/test_fuzz_files.py"],
    "fuzz of settings": ["tests/faults/test_fuzz_settings.py"],
    "workers": [
        "tests/faults/test_random_kills.py::test_workers",
        "tests/faults/test_concurrent_starts.py",
        "tests/faults/test_clock_jumps.py",
    ],
    "flips": ["tests/faults/test_flips_session.py", "tests/faults/test_flips_plan.py"],
    "disks and queues": ["tests/faults/test_full_disk.py", "tests/faults/test_queue_nonsense.py"],
}
"""Arguments of pytest; the longest first."""


@dataclass(frozen=True)
class Part:
    """How one part ended."""

    name: str
    seconds: float
    tests: int
    problem: str
    """Empty if all its tests have passed; a test that is skipped has not."""
    numbers: dict[str, Any]


def run_part(name: str, share: float, folder: Path) -> Part:
    """Runs the tests of a part in a process of their own."""
    place = folder / name.replace(" ", "-").replace(",", "")
    place.mkdir()
    numbers, report, log = place / "numbers.json", place / "report.xml", place / "log.txt"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "1500", f"--junitxml={report}"]
    variables = {**os.environ, "RLDSL_FAULTS": str(share), "RLDSL_FAULTS_FILE": str(numbers)}
    began = time.monotonic()
    with log.open("wb") as file:
        ended = subprocess.run([*command, *PARTS[name]], cwd=ROOT, env=variables, stdout=file, stderr=file, check=False)
    seconds = time.monotonic() - began
    suite = ElementTree.parse(report).getroot().find("testsuite") if report.exists() else None
    counts = {} if suite is None else suite.attrib
    skipped = int(counts.get("skipped", 0))
    problem = "failed" if ended.returncode or suite is None else f"{skipped} skipped" if skipped else ""
    if problem:
        print(log.read_text(errors="replace")[-6000:], flush=True)
    found = json.loads(numbers.read_text()) if numbers.exists() else {}
    print(f"{name}: {problem or 'passed'}, {seconds:.0f} s", flush=True)
    return Part(name, round(seconds, 1), int(counts.get("tests", 0)), problem, found)


def run_parts(names: list[str], share: float, jobs: int) -> dict[str, Any]:
    """Runs parts, `jobs` at a time; what is written to results/faults.json."""
    began, commit = time.monotonic(), _git("rev-parse", "HEAD")
    changed = [line for line in _git("status", "--porcelain").splitlines() if "results/faults.json" not in line]
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, ThreadPoolExecutor(jobs) as pool:
        parts = list(pool.map(lambda name: run_part(name, share, Path(folder)), names))
    return {
        "run": {
            "commit": commit,
            "uncommitted_changes": bool(changed),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - began, 1),
            "share": share,
            "jobs": jobs,
            "cores": len(os.sched_getaffinity(0)),
            "python": platform.python_version(),
            "problems": {part.name: part.problem for part in parts if part.problem},
        },
        "parts": {part.name: {"seconds": part.seconds, "tests": part.tests} for part in parts},
        "numbers": {name: found for part in parts for name, found in part.numbers.items()},
    }


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases")
    parser.add_argument("--jobs", type=int, default=3, help="parts at a time; many of them mostly wait")
    given = parser.parse_args()
    if wrong := [name for name in given.parts if name not in PARTS]:
        parser.error(f"there is no part {wrong[0]}")
    data = run_parts(given.parts or list(PARTS), given.share, given.jobs)
    text = json.dumps(data, indent=2, sort_keys=True) + "\n"
    problems = data["run"]["problems"]
    if given.parts or given.share < 1 or problems:
        print(text)
    else:
        RESULTS.write_text(text)
        print(f"wrote {RESULTS} after {data['run']['seconds']:.0f} s")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
