"""Submitters that are killed, stopped or get no answer: every job is known to the next command, and none is twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from rldsl.cli.app import run_rldsl
from rldsl.cli.load import load
from tests.faults.record import cases, record
from tests.slurm.lab import Lab

SBATCH = "/usr/bin/sbatch"
SEEDS = 12
WORDS = ("--only", "slow", "--seeds", SEEDS, "--set", "agent.nap=0.05")
FEW_SEEDS = 3
FEW = ("--only", "slow", "--seeds", FEW_SEEDS, "--set", "agent.nap=0.05")


def comments(lab: Lab) -> dict[str, str]:
    """Every job in the queue that is not ending, by id, with its comment."""
    lines = lab.cluster.ask("squeue", "--noheader", "--array", "--states=PD,R,CF", "--format=%i %k").splitlines()
    ours = {path.name for path in (lab.runs / ".jobs").glob("*-*")}
    jobs = dict(line.split() for line in lines)
    return {id: words for id, words in jobs.items() if words.split(":")[1:2] and words.split(":")[1] in ours}


def faults(lab: Lab, sessions: int) -> Counter[str]:
    """Jobs without a record, sessions with two jobs, and sessions without one."""
    queue, records = comments(lab), {one["job_id"]: one for one in lab.records}
    jobs = Counter(session for id in queue if id in records for session in records[id]["sessions"])
    return Counter(
        jobs=len(queue),
        orphans=len(queue.keys() - records.keys()),
        duplicates=sum(number > 1 for number in jobs.values()),
        lost_sessions=sessions - len(jobs),
    )


def check_every_session_has_one_job(lab: Lab, sessions: int = SEEDS) -> None:
    assert faults(lab, sessions) == Counter(jobs=sessions, orphans=0, duplicates=0, lost_sessions=0)


@pytest.fixture
def parked(lab: Lab) -> Lab:
    """Jobs that wait for ever."""
    lab.launcher(partition="parked")
    return lab


@pytest.mark.timeout(1500)
def test_a_submitter_may_be_killed_at_any_moment(parked: Lab) -> None:
    """At random moments from the intent until the records are written; a submitter that was faster does not count."""
    rng, kills = random.Random(7), cases(3, 200)
    numbers = Counter(dict.fromkeys(("submissions", "killed", "left_an_intent", "found_jobs_again"), 0))
    longest = 0.15
    load(parked.project.root / "exp.py")  # before the forks
    while numbers["killed"] < kills:
        words = (*FEW, "--frames", 1000 + numbers["submissions"])  # sessions of its own
        process = in_child(parked, "train", "exp.py", "--on", "lab", *words, "--detach")
        while process.is_alive() and not intents(parked):
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, longest))
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        process.join()
        killed = process.exitcode != 0
        longest *= 1.02 if killed else 0.9
        numbers.update(submissions=1, killed=killed, left_an_intent=bool(intents(parked)))
        said = said_by(parked, "status", "exp.py", *words) if rng.random() < 0.3 else ""
        said += said_by(parked, "train", "exp.py", "--on", "lab", *words, "--detach")
        numbers.update(faults(parked, FEW_SEEDS), found_jobs_again="of a submission that was interrupted" in said)
        assert not intents(parked)
        parked.cancel_all()
    assert numbers["jobs"] == numbers["submissions"] * FEW_SEEDS == len(parked.project.sessions)
    assert numbers["orphans"] == numbers["duplicates"] == numbers["lost_sessions"] == 0
    record("submissions to SLURM", **numbers)


def in_child(lab: Lab, *words: object) -> BaseProcess:
    """A command in a fork of this process, which has imported everything: what it says is in said.txt."""
    process = multiprocessing.get_context("fork").Process(target=_command, args=(lab.project.root, [*map(str, words)]))
    process.start()
    return process


def _command(root: Path, words: list[str]) -> None:
    os.chdir(root)
    output = os.open(root / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run_rldsl(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def said_by(lab: Lab, *words: object) -> str:
    """What a command says, which succeeds."""
    process = in_child(lab, *words)
    process.join(120)
    said = (lab.project.root / "said.txt").read_text()
    assert process.exitcode == 0, said
    return said


def intents(lab: Lab) -> list[Path]:
    """Submissions that are under way, or were interrupted."""
    return list((lab.runs / ".jobs").glob("*/intent.json"))


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An sbatch to which a test may add lines around the real one."""
    path = tmp_path / "bin" / "sbatch"
    path.parent.mkdir()
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


def write(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_lost_answer_is_not_a_refusal(parked: Lab, sbatch: Path) -> None:
    write(sbatch, f"{SBATCH} \"$@\" > /dev/null\necho 'sbatch: error: Socket timed out' >&2\nexit 1")
    assert f"submitted {SEEDS} sessions as {SEEDS} jobs" in parked.train(*WORDS, "--detach")
    check_every_session_has_one_job(parked)
    assert f"{SEEDS} sessions in the queue already" in parked.train(*WORDS, "--detach")


def test_a_job_that_arrives_late_is_cancelled_and_never_trains(parked: Lab, sbatch: Path) -> None:
    write(sbatch, f"echo \"$@\" > {sbatch}.said\necho 'sbatch: error: Socket timed out' >&2\nexit 1")
    assert "Socket timed out" in parked.train(*WORDS, "--detach", fails=True)
    late = subprocess.run([SBATCH, *(sbatch.with_name("sbatch.said").read_text().split())], check=True)
    assert late.returncode == 0 and len(comments(parked)) == SEEDS and not parked.records
    sbatch.unlink()
    said = parked.command("status", *WORDS)
    assert f"cancelled {SEEDS} jobs" in said and "they arrived too late" in said
    assert f"submitted {SEEDS} sessions" in parked.train(*WORDS, "--detach")
    check_every_session_has_one_job(parked)


def test_of_two_submitters_one_waits_and_sees_the_jobs_of_the_other(parked: Lab, sbatch: Path) -> None:
    write(sbatch, f'sleep 2\nexec {SBATCH} "$@"')
    both = [parked.project.start("exp.py", "train", "--on", "lab", *WORDS, "--detach") for _ in range(2)]
    said = sorted(process.communicate(timeout=120)[0] for process in both)
    assert f"submitted {SEEDS} sessions" in said[1] and f"{SEEDS} sessions in the queue already" in said[0] + said[1]
    assert "is submitting jobs" in said[0] + said[1] and "waiting until it has finished" in said[0] + said[1]
    check_every_session_has_one_job(parked)


def test_resume_right_after_stop_waits_and_submits_again(lab: Lab) -> None:
    words = ("--only", "slow", "--seeds", 6, "--set", "agent.nap=0.05")
    lab.launcher(parallel=3)
    lab.train(*words, "--detach")
    for seed in range(3):
        lab.until_begun(seed, points=1)
    before = lab.jobs
    assert "cancelled 6 jobs of 6 sessions" in lab.command("stop", *words)
    stopped = json.loads((lab.runs / ".jobs" / "tickets.jsonl").read_text().splitlines()[-1])["stopped"]
    assert [job for _, job in stopped] == before
    said = lab.train(*words, "--detach")
    assert "submitted 6 sessions" in said and "in the queue already" not in said
    assert not set(before) & set(lab.cluster.queue()), "the old jobs have ended"
    assert len(comments(lab)) == 6
    assert all(one["state"] in ("queued", "running") for one in lab.status(*words).values())
