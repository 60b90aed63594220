"""The clock of a machine jumps while a session trains: its result, its times and its state stay right."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rldsl.store.session_dir import SessionDir
from tests.faults.record import FULL, record
from tests.project import ROOT, events, rows, until, work
from tests.train.attempts import Attempts
from tests.train.packs import CASES, session, train

LIBRARY = Path(__file__).with_name("jumping_clock.c")
JUMPS = (3600, 120, -30, 31_536_000, 0, -86_400)
"""Seconds that the clock is wrong by, one after the other."""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_clock_jumps(tmp_path: Path) -> None:
    one = session(*CASES["ppo"], frames=16_384 if FULL else 2048, log_every=64, checkpoint_every=1024)
    whole = train(tmp_path / "whole", one).directories[0]
    attempts = Attempts(tmp_path / "runs", one)
    library, clock = tmp_path / "clock.so", tmp_path / "clock"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, LIBRARY], check=True)
    clock.write_text(f"{0:12}\n")
    variables = {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(clock), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "rldsl.train", attempts.plan, "--runs", attempts.runs, "--session", one.id]
    jumps, directory = JUMPS[0 if FULL else -2 :], SessionDir(attempts.paths[0])
    with subprocess.Popen([*map(str, command)], cwd=ROOT, env=os.environ | variables) as process:
        for number, jump in enumerate(jumps):
            until(lambda number=number: len(rows(directory.path)) > 4 + 8 * number or process.poll() is not None)
            with clock.open("r+") as file:
                file.write(f"{jump:12}\n")
            assert process.poll() is not None or directory.state() in ("running", "done")
            time.sleep(0.05)
        assert process.wait(120) == 0
    assert work(directory.path) == work(whole.path)
    assert events(directory.path)[-1]["time"] < time.time() - 80_000, "the clock has jumped"
    seconds = [float(row["seconds"]) for row in rows(directory.path)]
    assert seconds == sorted(seconds) and 0 <= seconds[-1] < 120
    assert directory.state() == "done" and directory.read_state().seconds >= 0
    record("clock jumps", cases=len(jumps), different=0)
