"""Two thousand sessions: a handful of calls to SLURM, however many they are."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.slurm.lab import Lab

SESSIONS = 2000
COMMANDS = ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every call to SLURM leaves its name in this file."""
    log, folder = tmp_path / "calls", tmp_path / "counted"
    folder.mkdir()
    for name in COMMANDS:
        (folder / name).write_text(f'#!/bin/sh\necho {name} >> {log}\nexec {shutil.which(name)} "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return log


def counted(calls: Path) -> Counter[str]:
    found = Counter(calls.read_text().split()) if calls.exists() else Counter[str]()
    calls.unlink(missing_ok=True)
    return found


def test_thousands_of_sessions_take_a_handful_of_calls(lab: Lab, calls: Path) -> None:
    lab.launcher(partition="parked")
    words = ("--only", "slow", "--seeds", SESSIONS)
    began = time.monotonic()
    said = lab.train(*words, "--detach")
    submitting = time.monotonic() - began
    assert f"submitted {SESSIONS:,} sessions as {SESSIONS:,} jobs" in said.replace("2000", "2,000")
    made = counted(calls)
    assert made["sbatch"] == 2, "arrays of at most 1001"
    assert made.total() <= 5
    began = time.monotonic()
    states = lab.status(*words)
    asking = time.monotonic() - began
    assert {one["state"] for one in states.values()} == {"queued"} and len(states) == SESSIONS
    assert counted(calls).total() <= 2
    print(f"\n{SESSIONS} sessions: submitted in {submitting:.1f} s, status in {asking:.1f} s")
    assert submitting < 30
    assert f"cancelled {SESSIONS:,} jobs" in lab.command("stop", *words).replace("2000", "2,000")
    assert counted(calls).total() <= 5
    lab.until_gone()
