"""Searches on a real SLURM cluster: the driver is a job, and it, its jobs and the user may go away at any time."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rldsl.search.history import History
from rldsl.search.leaderboard import leaderboard
from rldsl.store.search_dir import SearchDir, search_dirs
from tests.project import events, until
from tests.slurm.lab import EXPERIMENT, Lab

SEARCHES = """
from rldsl import log_uniform, uniform

small = cart.agent(PPO(rollout=128, epochs=2)).frames(6144).log_every(512).checkpoint_every(512)
asha = small.search(lr=log_uniform(1e-4, 1e-2), gamma=uniform(0.9, 0.999)).asha(6, grace=1024, eta=3).named("cart/asha")
naps = slow.search(nap=uniform(0.05, 0.06)).random(3).seeds(1).named("cart/naps")

if __name__ == "__main__":
    main(asha, naps)
"""


@pytest.fixture
def searches(lab: Lab) -> Lab:
    lab.project.write(EXPERIMENT.partition("if __name__")[0] + SEARCHES)
    lab.project.write("from rldsl import Local\n\nlauncher = Local(members=1)\n", "launchers/here.py")
    return lab


def driver(lab: Lab) -> str:
    """The job of the newest driver."""
    return [record["job_id"] for record in lab.records if record.get("search")][-1]


def history(directory: SearchDir) -> History:
    return History.of(directory.events())


def the_search(runs: Path) -> SearchDir:
    return until(lambda: next(iter(search_dirs(runs)), None))


def trials(directory: SearchDir) -> dict[int, dict[str, Any]]:
    """Point and values of every trial."""
    return {one.number: {"point": one.point, "values": one.values} for one in history(directory).trials}


def begun(lab: Lab) -> Path:
    """The directory of a session that has written a checkpoint and is still running."""

    def find() -> Path | None:
        for path in lab.project.sessions:
            told = [one["event"] for one in events(path)]
            if told[-1:] == ["checkpoint"] and (path / "alive.json").exists():
                return path
        return None

    found: Path = until(find, 180)
    return found


def test_a_detached_search_survives_a_requeue_and_a_killed_worker(searches: Lab) -> None:
    lab = searches
    lab.launcher(parallel=3, driver_hours=0.5)
    said = lab.command("search", "--only", "asha", "--on", "lab", "--detach")
    assert f"cart/asha: slurm job {driver(lab)} drives the search" in said
    assert "has a driver" in lab.command("search", "--only", "asha", "--on", "lab", "--detach", fails=True)
    killed = begun(lab)
    os.kill(lab.pid_of(killed), signal.SIGKILL)
    lab.cluster.ask("scontrol", "requeue", driver(lab))
    directory = the_search(lab.runs)
    until(lambda: driver(lab) not in lab.cluster.queue(), 400)
    assert "search cart/asha: 6 of 6 trials: 1 done, 5 paused; finished" in lab.command("status", "--only", "asha")
    whole = lab.project.root / "whole"
    assert lab.project.python("exp.py", "search", "--only", "asha", "--on", "here", "--runs", whole).returncode == 0
    assert trials(directory) == trials(the_search(whole)), "values are equal bit for bit"
    boards = [leaderboard(history(one), one.experiment()) for one in (directory, the_search(whole))]
    assert [row.number for row in boards[0]] == [row.number for row in boards[1]]
    jobs = Counter(session for record in lab.records for session in record["sessions"])
    assert jobs.total() == 6 + 2 + 1 + 1, "one job for each trial and rung, and one more for the worker that was killed"
    for path in lab.project.sessions:
        reached = [one["frame"] for one in events(path) if one["event"] in ("paused", "done")]
        assert reached == sorted(set(reached)), "no rung was trained twice"
    assert "Restarts=1" in lab.cluster.ask("scontrol", "show", "job", driver(lab))


def test_leaving_a_search_keeps_its_jobs_and_resume_and_stop_know_them(searches: Lab) -> None:
    lab = searches
    lab.launcher(parallel=2)
    process = lab.project.start("exp.py", "search", "--only", "naps", "--on", "lab")
    lab.until_begun(1_000_000, points=1)
    os.kill(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "jobs keep running" in said, said
    assert len(lab.cluster.queue().keys() & set(lab.jobs)) == 2
    assert "nothing drives it, `resume` continues" in lab.command("status", "--only", "naps")
    before = lab.jobs
    assert "drives the search" in lab.command("resume", "--only", "naps", "--detach")
    until(lambda: "running on node" in lab.command("status", "--only", "naps").rpartition("search cart/naps")[2], 60)
    until(lambda: the_search(lab.runs).running, 60)
    assert [job for job in lab.jobs if job not in before] == [driver(lab)], "the jobs are adopted"
    said = lab.command("stop", "--only", "naps")
    assert "stopped the driver of the search cart/naps" in said and "cancelled 2 jobs of 2 sessions" in said
    lab.until_gone()
    said = lab.command("status", "--only", "naps")
    assert "2 sessions: 2 resume" in said and "nothing drives it" in said
