"""Sessions on a real SLURM cluster: every way that a job can end, and what is left of it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from rldsl.launch.slurm_queue import job_states
from tests.project import rows, until, work
from tests.slurm.lab import Lab, weights


@pytest.fixture(autouse=True)
def _begin(long: Lab) -> None:
    """The longest test begins with the first."""


def test_a_session_runs_as_a_job_and_is_followed(lab: Lab) -> None:
    said = lab.train("--only", "slow", "--seeds", 1)
    assert "submitted 1 session as 1 job to slurm" in said and "done" in said
    events = [event for event in lab.events() if event != "checkpoint"]
    assert events == ["created", "submitted", "launched", "started", "done"]
    assert "gpus" in (lab.seed(0) / "log.txt").read_text(), "its output is its log"
    assert lab.status("--only", "slow", "--seeds", 1)[0]["state"] == "done"


def test_an_array_of_twenty_runs_as_many_at_a_time_as_the_launcher_says(lab: Lab) -> None:
    lab.launcher(parallel=4)
    lab.train("--only", "slow", "--seeds", 20, "--frames", 200, "--set", "agent.nap=0.002", "--detach")
    assert len({job.partition("_")[0] for job in lab.jobs}) == 1, "one array"
    assert [job.partition("_")[2] for job in lab.jobs] == [str(index) for index in range(20)]
    most = 0
    while lab.cluster.queue().keys() & set(lab.jobs):
        queue = lab.cluster.queue()
        most = max(most, sum(queue.get(job) == "RUNNING" for job in lab.jobs))
        time.sleep(0.3)
    assert 1 < most <= 4
    assert all("done" in lab.events(seed) for seed in range(20))


def test_a_pack_is_one_job(lab: Lab) -> None:
    lab.launcher(members=2)
    lab.train("--only", "slow", "--frames", 200)
    assert len(lab.jobs) == 1 and len(lab.records[0]["sessions"]) == 2
    assert "done" in lab.events(0) and "done" in lab.events(1)


def test_a_session_that_fails_says_why_and_resume_submits_it_again(lab: Lab) -> None:
    words = ("--only", "slow", "--seeds", 1, "--set", "agent.wrong=true")
    said = lab.train(*words, fails=True)
    assert "ValueError: kaboom" in said
    status = lab.status(*words)[0]
    assert (status["state"], status["reason"]) == ("failed", "ValueError: kaboom")
    lab.until_gone()
    until(lambda: job_states(lab.jobs)[lab.jobs[0]].reason == "exit 1")
    said = lab.train(*words, "--detach")
    assert "1 session failed before; `resume` retries it" in said and "submitted" not in said
    assert "submitted 1 session" in lab.command("resume", "--on", "lab", *words, "--detach")


def test_a_job_that_fails_before_its_session_begins_shows_what_slurm_has_of_it(lab: Lab) -> None:
    lab.launcher(setup=("echo no such module >&2", "exit 7"))
    lab.train("--only", "slow", "--seeds", 1, "--detach")
    lab.until_gone()
    said = until(lambda: (text := lab.command("status", "--only", "slow", "--seeds", 1)).count("exit 7") > 1 and text)
    assert "no such module" in said


def test_kill_9_is_told_and_the_same_command_goes_on(lab: Lab) -> None:
    words = ("--only", "slow", "--seeds", 1, "--set", "agent.nap=0.01", "--set", "budget.checkpoint_every=100")
    lab.train(*words, "--detach")
    path = lab.until_begun()
    os.kill(lab.pid(), signal.SIGKILL)
    lab.until_gone()
    until(lambda: job_states(lab.jobs)[lab.jobs[0]].reason == "killed by SIGKILL")
    assert "killed by SIGKILL" in lab.status(*words)[0]["reason"]
    before = rows(path)
    lab.train(*words)
    assert lab.events().count("started") == 2 and lab.events()[-1] == "done"
    assert rows(path)[: len(before) - 1] == before[:-1], "no log point of a checkpoint is lost"


def test_stop_cancels_one_session_and_then_all(lab: Lab) -> None:
    lab.launcher(parallel=2)
    words = ("--only", "slow", "--seeds", 3, "--set", "agent.nap=0.05")
    lab.train(*words, "--detach")
    lab.until_begun(0, points=1), lab.until_begun(1, points=1)
    assert {seed: one["state"] for seed, one in lab.status(*words).items()} == {0: "running", 1: "running", 2: "queued"}
    assert "on node" in lab.status(*words)[0]["reason"]
    first = lab.status(*words)[0]["session"]
    assert "cancelled 1 job of 1 session" in lab.command("stop", *words, "--session", first)
    lab.until_event("stopped")
    lab.until_gone(lab.jobs[0])
    assert "stopped" not in lab.events(1)
    assert "cancelled 2 jobs of 2 sessions" in lab.command("stop", *words)
    lab.until_event("stopped", 1)
    lab.until_gone()
    assert set(until(lambda: _all(lab, "cancelled"))) == set(lab.jobs)
    assert {one["state"] for one in lab.status(*words).values()} <= {"new", "resume"}


def _all(lab: Lab, state: str) -> list[str] | None:
    found = job_states(lab.jobs)
    return lab.jobs if {found[job].state for job in lab.jobs} == {state} else None


def test_a_warning_makes_it_checkpoint_and_go_on_bit_for_bit(lab: Lab) -> None:
    words = ("--only", "ppo", "--seeds", 1)
    lab.train(*words, "--detach")
    lab.until_begun()
    lab.cluster.ask("scancel", "--signal=USR2", lab.jobs[0])
    lab.until_event("stopped")
    found = until(lambda: lab.status(*words)[0]["state"] in ("queued", "running"))
    assert found, "it is back in the queue"
    whole = lab.project.root / "whole"
    assert lab.project.python("exp.py", *words, "--on", "local", "--runs", whole).returncode == 0
    lab.until_event("done")
    assert lab.events().count("started") == 2 and len(lab.jobs) == 1
    assert work(lab.seed(0)) == work(lab.seed(0, whole))
    ours, theirs = weights(lab.seed(0)), weights(lab.seed(0, whole))
    assert (ours["best"], ours["000000012800"]) == (theirs["best"], theirs["000000012800"])


def test_an_eviction_without_a_warning_goes_on_too(lab: Lab) -> None:
    lab.train("--only", "slow", "--seeds", 1, "--set", "agent.nap=0.008", "--detach")
    lab.until_begun()
    lab.cluster.ask("scancel", "--signal=TERM", lab.jobs[0])
    lab.until_event("done")
    assert lab.events().count("started") == 2 and len(lab.jobs) == 1


@pytest.mark.timeout(600)  # SLURM itself waits about two minutes until it starts the job again
def test_a_node_that_fails_costs_nothing_but_time(lab: Lab) -> None:
    lab.launcher(constraint="frail")
    words = ("--only", "slow", "--seeds", 1, "--set", "agent.nap=0.01", "--set", "budget.checkpoint_every=100")
    lab.train(*words, "--detach")
    lab.until_begun()
    lab.cluster.crash("node1", lab.jobs[0])
    assert until(lambda: lab.status(*words)[0]["state"] == "queued")
    lab.cluster.revive("node1")
    lab.until_event("done", seconds=400)
    assert lab.events().count("started") == 2 and len(lab.jobs) == 1
    assert [int(row["frame"]) for row in rows(lab.seed(0))] == list(range(100, 1001, 100))


def test_out_of_memory_is_told_from_other_ends(lab: Lab) -> None:
    lab.launcher(memory_gb=0.4)
    words = ("--only", "slow", "--seeds", 1, "--set", "agent.eats=900", "--set", "agent.nap=0.05")
    lab.train(*words, "--detach")
    lab.until_gone()
    assert until(lambda: "out of memory" in lab.status(*words)[0]["reason"])
    said = lab.command("status", *words)
    assert "out of memory; the last lines of its log" in said and "memory limit" in said


def test_gpus_are_handed_out_and_too_many_are_refused(lab: Lab) -> None:
    lab.launcher(gpus=1)
    lab.train("--only", "slow", "--seeds", 1, "--frames", 100, "--set", "compute.device=cuda")
    assert "gpus 0" in (lab.seed(0) / "log.txt").read_text()
    lab.launcher(gpus=9)
    said = lab.train("--only", "slow", "--frames", 200, "--detach", fails=True)
    assert said.strip().startswith("error: sbatch refused the jobs: ") and "\n" not in said.strip()


def test_the_same_command_reconciles(lab: Lab) -> None:
    quick = ("--only", "slow", "--set", "agent.nap=0.002")
    lab.train(*quick, "--seeds", 1)
    lab.launcher(parallel=1, setup=("sleep 60",))  # they are still there when they are asked for
    lab.train(*quick, "--seeds", 3, "--frames", 1000, "--detach")
    assert len(lab.jobs) == 3, "one done, two submitted"
    assert "2 sessions in the queue already" in lab.train(*quick, "--seeds", 3, "--detach")
    assert len(lab.jobs) == 3, "what is live is kept"
    said = lab.train("--only", "slow", "--set", "agent.nap=0.003", "--seeds", 1, "--detach")
    assert "2 jobs in the queue no longer in the plan" in said and "--cancel-stale" in said
    said = lab.train("--only", "slow", "--set", "agent.nap=0.003", "--seeds", 1, "--detach", "--cancel-stale")
    assert "cancelled 2 jobs in the queue no longer in the plan" in said
    lab.until_gone(*lab.jobs[1:3])


def test_jobs_run_the_code_as_it_was_when_they_were_submitted(lab: Lab) -> None:
    lab.launcher(setup=("sleep 3",))
    lab.train("--only", "slow", "--seeds", 1, "--detach")
    lab.project.write("raise SystemExit('changed')", "slow_agent.py")
    lab.until_event("done")


def test_ctrl_c_leaves_the_jobs_running(lab: Lab) -> None:
    words = ("--only", "slow", "--seeds", 1, "--set", "agent.nap=0.05")
    watching = lab.project.start("exp.py", "train", "--on", "lab", *words)
    lab.until_begun(points=1)
    watching.send_signal(signal.SIGINT)
    said, _ = watching.communicate(timeout=20)
    assert watching.returncode == 130 and "the jobs keep running: `status` shows them, `stop` ends them" in said
    assert lab.status(*words)[0]["state"] == "running"


def test_without_accounts_it_says_so(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.train("--only", "slow", "--seeds", 1, "--set", "agent.nap=0.05", "--detach")
    lab.until_begun(points=1)
    os.kill(lab.pid(), signal.SIGKILL)
    lab.until_gone()
    only = tmp_path / "bin"
    only.mkdir()
    for name in ("squeue", "scontrol", "git"):
        (only / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(only))
    found = job_states([*lab.jobs, "1"])
    assert found[lab.jobs[0]].state == "failed", "the queue remembers for a while"
    assert found["1"].reason == "why is not known: SLURM keeps no accounts here"


def test_a_real_time_limit_costs_no_log_point(long: Lab) -> None:
    long.until_event("done", seconds=180)
    assert long.events().count("started") >= 2 and len(long.jobs) == 1
    frames = [int(row["frame"]) for row in rows(long.seed(0))]
    assert frames == list(range(100, 1501, 100))
