"""A job of several packs, as a process of this machine: cores, GPUs, signals, failures and the next life."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rldsl.launch.jobs import Job, Resources, joined
from rldsl.launch.process_end import STOPPED
from rldsl.spec.launcher import Slurm
from rldsl.store.session_dir import SessionDir
from tests.project import until

SEES = """
import json, os
print(json.dumps([os.environ["CUDA_VISIBLE_DEVICES"], len(os.sched_getaffinity(0))]))
"""
LISTENS = """
import signal, sys, time
for number in (signal.SIGTERM, signal.SIGUSR2):
    signal.signal(number, lambda number, _: (print("saved", flush=True), sys.exit(3)))
print("ready", flush=True)
time.sleep(60)
"""
OWN = len(os.sched_getaffinity(0))


def pack(runs: Path, seed: int, code: str, resources: Resources | None = None) -> Job:
    """A process that runs some code in the name of a session."""
    name = f"pole/random-{'a' * 12}/seed-{seed}"
    session = SessionDir.create(runs, name, {"frames": 1000}, "")
    command = (sys.executable, "-c", code)
    sessions, resources = (session.id,), resources or Resources()
    return Job(sessions, session.path, command, resources, directories=(session.path,), attempts=(0,))


def start(packs: list[Job], cpus: int = 10_000, **environment: str) -> subprocess.Popen[str]:
    job = joined(packs, Resources(cpus))
    own = {**os.environ, **environment}
    return subprocess.Popen(job.command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


def log(one: Job) -> str:
    path = one.directory / "log.txt"
    return path.read_text() if path.exists() else ""


def seen(one: Job) -> Any:
    return json.loads(log(one).splitlines()[-1])


def test_each_process_has_its_gpu_or_none(tmp_path: Path) -> None:
    gpu = Resources(1, 1)
    packs = [pack(tmp_path, seed, SEES, gpu if seed < 4 else None) for seed in range(5)]
    code, said = finish(start(packs, CUDA_VISIBLE_DEVICES="4,7"))
    assert code == 0, said
    assert [seen(one)[0] for one in packs] == ["4", "4", "7", "7", ""]
    assert {seen(one)[1] for one in packs} == {OWN}, "the cores are not its own: the system chooses"


@pytest.mark.skipif(OWN < 2, reason="there is one core")
def test_each_process_has_its_cores_if_the_job_has_its_own(tmp_path: Path) -> None:
    packs = [pack(tmp_path, seed, SEES) for seed in range(2)]
    assert finish(start(packs, cpus=OWN))[0] == 0
    assert [seen(one)[1] for one in packs] == [1, 1]


def test_one_that_fails_ends_no_other_and_is_told(tmp_path: Path) -> None:
    packs = [pack(tmp_path, 0, "raise SystemExit(7)"), pack(tmp_path, 1, "import os; os.kill(os.getpid(), 9)")]
    packs.append(pack(tmp_path, 2, "import time; time.sleep(1); print('whole')"))
    code, said = finish(start(packs))
    assert code == 1 and log(packs[2]) == "whole\n"
    assert "-s0: exit 7" in said and "-s1: killed by SIGKILL" in said and "-s2: done" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_reaches_all(tmp_path: Path, number: signal.Signals) -> None:
    packs = [pack(tmp_path, seed, LISTENS) for seed in range(2)]
    process = start(packs)
    until(lambda: all("ready" in log(one) for one in packs))
    process.send_signal(number)
    code, said = finish(process)
    assert code == STOPPED, said
    assert [log(one) for one in packs] == ["ready\nsaved\n"] * 2


def test_in_its_next_life_only_the_unfinished_are_started(tmp_path: Path) -> None:
    packs = [pack(tmp_path, seed, "print('again')") for seed in range(4)]
    packs[3] = replace(packs[3], attempts=(1,))
    for one, event in zip(packs, ("done", "failed", "stopped", "failed"), strict=True):
        journal = SessionDir(one.directory).journal
        journal.append("started")
        journal.append(event)
    code, said = finish(start(packs))
    assert code == 0, said
    assert [log(one) for one in packs] == ["", "", "again\n", "again\n"], "the last failed before it was submitted"
    assert said.count("is finished already") == 2


def test_a_supervisor_that_is_killed_leaves_nobody_behind(tmp_path: Path) -> None:
    one = pack(tmp_path, 0, f"import os; print(os.getpid(), flush=True)\n{LISTENS}")
    process = start([one, pack(tmp_path, 1, LISTENS)])
    until(lambda: "ready" in log(one))
    pid = int(log(one).split()[0])
    process.kill()
    finish(process)
    until(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def test_many_packs_fit_into_a_command(tmp_path: Path) -> None:
    packs = [pack(tmp_path, seed, "pass" * 100) for seed in range(64)]
    command = joined(packs, Resources(64)).command
    assert max(map(len, command)) < 100_000 and sum(map(len, command)) < 1_000_000
    assert Slurm().processes is None
