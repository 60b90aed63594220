"""Jobs that are warned before their time limit, over and over; and what happens before their sessions begin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import events, rows, until, work
from tests.slurm.lab import Lab, weights

MODULE = """
module() {
  [ "$2" = good ] && export LOADED=four && return
  echo "ERROR: there is no module $2" >&2
  return 3
}
"""


def warn(lab: Lab, life: int) -> None:
    """Warns the job of the first session once it writes a checkpoint that it will not finish."""
    path = until(lambda: next(iter(lab.runs.glob("*/*/seed-0/log.txt")), None), 60)
    until(lambda: path.read_text().count("hangs") >= life, 60)
    lab.cluster.ask("scancel", "--signal=USR2", lab.jobs[0])


def test_a_checkpoint_that_takes_too_long_is_abandoned_in_time(lab: Lab) -> None:
    lab.launcher(warning_seconds=6)
    words = ("--only", "slow", "--seeds", 1, "--set", "agent.hangs=once", "--set", "budget.checkpoint_every=100")
    lab.train(*words, "--detach")
    warn(lab, 1)
    lab.until_event("done")
    requeued = [one for one in events(lab.seed(0)) if one["event"] == "requeued"]
    assert [one["overran"] for one in requeued] == [True] and lab.events().count("launched") == 2
    assert "took longer than 1 seconds: it resumes from the one before" in (lab.seed(0) / "log.txt").read_text()
    assert [int(row["frame"]) for row in rows(lab.seed(0))] == list(range(100, 1001, 100))


def test_a_job_without_progress_in_three_lives_is_stopped(lab: Lab) -> None:
    lab.launcher(warning_seconds=6)
    words = ("--only", "slow", "--seeds", 1, "--set", "agent.hangs=always", "--set", "budget.checkpoint_every=100")
    lab.train(*words, "--detach")
    for life in (1, 2, 3):
        warn(lab, life)
    lab.until_event("failed")
    lab.until_gone()
    assert lab.events().count("launched") == 3 and lab.events().count("requeued") == 2
    status = lab.status(*words)[0]
    assert status["state"] == "failed" and status["reason"].startswith("no progress in 3 lives of job ")
    assert "its last checkpoint is of frame 0; it needs more `hours`" in status["reason"]


@pytest.fixture
def module() -> Iterator[None]:
    """A site whose login shells have a function `module`."""
    path = Path("/etc/profile.d/rldsl_test_module.sh")
    path.write_text(MODULE)
    yield
    path.unlink()


def test_setup_lines_run_as_in_a_login_shell(lab: Lab, module: None) -> None:
    lab.launcher(setup=("module load good", 'export LOADED="$LOADED-$LOADED"'))
    lab.train("--only", "slow", "--seeds", 1, "--frames", 100, "--set", "agent.says=LOADED")
    assert "LOADED is 9 long" in (lab.seed(0) / "log.txt").read_text()


def test_a_setup_line_that_fails_ends_the_job_and_is_named(lab: Lab, module: None) -> None:
    words = ("--only", "slow", "--seeds", 1, "--frames", 100)
    lab.launcher(setup=("module load bad", "touch never"))
    said = lab.train(*words, fails=True)
    assert "setup failed with exit 3: module load bad" in said and "ERROR: there is no module bad" in said
    status = lab.status(*words)[0]
    assert "setup failed with exit 3: module load bad" in status["reason"] and status["state"] == "new"
    assert "ERROR: there is no module bad" in lab.command("status", *words)


def test_a_job_that_works_on_the_disk_of_its_node_resumes_from_what_was_copied_back(lab: Lab, tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.mkdir()
    lab.launcher(scratch=True, env={"TMPDIR": str(node)})
    words = ("--only", "ppo", "--seeds", 1, "--frames", 38_400, "--set", "budget.checkpoint_every=640")
    lab.train(*words, "--detach")
    lab.until_event("checkpoint")
    (folder,) = node.iterdir()
    assert folder.name == f"rldsl-{lab.jobs[0]}" and folder.stat().st_mode & 0o777 == 0o700
    assert next(folder.glob("*-s0/*/manifest.json"), None), "checkpoints are written there first"
    lab.cluster.ask("scancel", "--signal=USR2", lab.jobs[0])
    lab.until_event("requeued")
    lab.until_event("started", times=2)
    lab.until_event("checkpoint", times=lab.events().count("checkpoint") + 1)
    assert lab.status(*words)[0]["frame"] > 0
    lab.cluster.ask("scontrol", "requeue", lab.jobs[0])
    whole = lab.project.root / "whole"
    assert lab.project.python("exp.py", *words, "--on", "local", "--runs", whole).returncode == 0
    lab.until_event("done")
    lab.until_gone()
    assert lab.events().count("started") == 3 and len(lab.jobs) == 1 and not list(node.iterdir())
    assert work(lab.seed(0)) == work(lab.seed(0, whole))
    ours, theirs = weights(lab.seed(0)), weights(lab.seed(0, whole))
    assert (ours["best"], ours["000000038400"]) == (theirs["best"], theirs["000000038400"])
