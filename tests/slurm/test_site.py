"""What sites ask for: limits of submitted jobs, containers, other options, accounts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rldsl.monitor.queue import spent_so_far
from tests.slurm.lab import Lab

WORDS = ("--only", "slow", "--seeds", 12)
LIMIT = """#!/bin/bash
# sbatch at a site that lets a user have so many jobs; SLURM itself would need limits in its database
waiting=$(squeue --me --noheader --array --states=PD,R,CF | wc -l)
asked=$(grep -oP '(?<=--array=0-)\\d+' "$2")
if [ $((waiting + asked + 1)) -gt "$(cat {limit})" ]; then
  echo 'sbatch: error: AssocMaxSubmitJobLimit' >&2
  echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)' >&2
  exit 1
fi
exec /usr/bin/sbatch "$@"
"""
APPTAINER = """#!/bin/bash
# in place of Apptainer, which is no package of Debian 12: runs the command, in the directory that it was told
shift
while [[ $1 == --* ]]; do case $1 in --pwd=*) cd "${{1#--pwd=}}" ;; esac; shift; done
echo "inside of $1 at $PWD"
shift 2
exec {python} "$@"
"""


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory at the beginning of PATH."""
    made = tmp_path / "bin"
    made.mkdir()
    monkeypatch.setenv("PATH", f"{made}:{os.environ['PATH']}")
    return made


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_what_a_limit_keeps_out_of_the_queue_is_a_backlog(lab: Lab, bin: Path) -> None:
    lab.launcher(partition="parked")
    limit = bin / "limit"
    write(bin / "sbatch", LIMIT.replace("{limit}", str(limit)))
    before = len(lab.cluster.queue())
    limit.write_text(str(before + 5))
    said = lab.train(*WORDS, "--detach")
    assert "submitted 5 of 12 sessions: the site limits the number of submitted jobs (AssocMaxSubmitJobLimit)" in said
    status = lab.status(*WORDS)
    assert [one["state"] for one in status.values()] == ["queued"] * 12
    assert sum("not submitted yet" in one["reason"] for one in status.values()) == 7
    limit.write_text(str(before + 100))
    assert "submitted 7 sessions" in lab.command("resume", "--on", "lab", *WORDS, "--detach")
    assert len(lab.jobs) == 12 and sum(one["state"] == "queued" for one in lab.status(*WORDS).values()) == 12
    assert "cancelled 12 jobs" in lab.command("stop", *WORDS)


def test_a_command_that_follows_submits_the_backlog_as_jobs_end(lab: Lab, bin: Path) -> None:
    write(bin / "sbatch", LIMIT.replace("{limit}", str(bin / "limit")))
    (bin / "limit").write_text(str(len(lab.cluster.queue()) + 2))
    said = lab.train("--only", "slow", "--seeds", 3, "--frames", 100)
    assert (
        "submitted 2 of 3 sessions" in said and "submitted 1 session as 1 job" in said and "3 sessions: 3 done" in said
    )


def test_sessions_train_inside_of_a_container(lab: Lab, bin: Path) -> None:
    write(bin / "apptainer", APPTAINER.format(python=sys.executable))
    (lab.project.root / "image.sif").touch()
    lab.launcher(container="image.sif", sbatch={"nice": 100, "exclusive": True}, partition="main,parked")
    lab.train("--only", "slow", "--seeds", 1, "--frames", 100)
    log = (lab.seed(0) / "log.txt").read_text()
    assert f"inside of {lab.project.root / 'image.sif'} at {lab.runs / '.code'}" in log and "done" in lab.events()
    job = lab.cluster.ask("scontrol", "show", "job", lab.jobs[0])
    assert "Nice=100" in job and "Partition=main" in job and "OverSubscribe=NO" in job
    said = lab.command("status", "--only", "slow", "--seeds", 1, "--frames", 100)
    assert "used so far: " in said and " core-hours" in said
    assert spent_so_far(lab.runs) and all(words in said for words in spent_so_far(lab.runs)), "the monitor says it too"


def test_a_plan_names_partitions_that_do_not_exist(lab: Lab) -> None:
    lab.launcher(partition="main,prked")
    said = lab.command("plan", *WORDS, "--on", "lab")
    assert "there is no partition prked; did you mean parked" in said and "partition main is up" in said
