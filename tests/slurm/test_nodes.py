"""Jobs of several packs on a real SLURM cluster: each process has its cores, its threads and its GPU."""

from __future__ import annotations

from tests.project import events, until
from tests.slurm.lab import Lab


def seen(lab: Lab, seed: int, name: str) -> list[str]:
    """What a session says that it has."""
    lines = (lab.seed(seed) / "log.txt").read_text().splitlines()
    return [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"{name} ")]


def test_a_job_fills_a_node_one_that_fails_ends_no_other_and_only_the_unfinished_go_on(lab: Lab) -> None:
    lab.launcher(cpus=4, gpus=2, per_gpu=2, memory_gb=4.0)
    slow = ("--set", "agent.nap=0.05", "--set", "agent.by_seed=true", "--set", "agent.wrong_seed=1")
    words = ("--only", "slow", "--seeds", 4, "--frames", 300, "--set", "compute.device=cuda", *slow)
    plan = lab.command("plan", "--on", "lab", *words)
    assert "on slurm: 1 job\n" in plan and "gres gpu:2" in plan
    assert "each job runs 4 processes with 1 thread, a GPU for up to 2 of them each" in plan
    assert "warning" not in plan
    lab.train(*words, "--detach")
    assert len(lab.jobs) == 1 and len(lab.records[0]["sessions"]) == 4
    lab.until_event("done", 0)
    lab.until_event("failed", 1)
    lab.until_begun(2, points=0), lab.until_begun(3, points=0)
    assert [seen(lab, seed, "gpus") for seed in range(4)] == [["0"], ["0"], ["1"], ["1"]]
    assert [seen(lab, seed, "threads") for seed in range(4)] == [["1"]] * 4
    assert {lab.status(*words)[seed]["state"] for seed in (2, 3)} == {"running"}, "though another one has failed"

    lab.cluster.ask("scancel", "--signal=TERM", lab.jobs[0])  # as a preemption does
    lab.until_event("stopped", 2), lab.until_event("stopped", 3)
    lab.until_event("done", 2), lab.until_event("done", 3)
    started = [lab.events(seed).count("started") for seed in range(4)]
    assert started == [1, 1, 2, 2], "one was done, one had failed, two go on"
    assert len(lab.jobs) == 1, "the same job, requeued"
    lab.until_gone()
    log = until(lambda: (text := (lab.runs / ".jobs").rglob("*.out")) and "".join(one.read_text() for one in text))
    assert "is finished already" in log and "-s1: exit 1" in log
    (started_event,) = [one for one in events(lab.seed(0)) if one["event"] == "started"]
    assert started_event["device"] == "cuda"


def test_a_warning_reaches_all_processes_and_threads_are_as_declared(lab: Lab) -> None:
    lab.launcher(cpus=4, memory_gb=4.0)
    threads = ("--set", "compute.threads=2", "--set", "compute.device=cpu")
    words = ("--only", "ppo", "--seeds", 2, *threads)
    assert "each job runs 2 processes with 2 threads each" in lab.command("plan", "--on", "lab", *words)
    lab.train(*words, "--detach")
    lab.until_begun(0), lab.until_begun(1)
    lab.cluster.ask("scancel", "--signal=USR2", lab.jobs[0])
    lab.until_event("stopped", 0), lab.until_event("stopped", 1)
    lab.until_event("done", 0), lab.until_event("done", 1)
    assert [lab.events(seed).count("started") for seed in (0, 1)] == [2, 2] and len(lab.jobs) == 1
