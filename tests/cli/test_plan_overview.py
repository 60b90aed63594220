"""`plan` with several files: a line for each experiment."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.project import Project

ROOT = Path(__file__).parents[2]
ONE = """
    from shared import cartpole

    from rldsl import PPO, Random, main

    random = cartpole.agent(Random()).seeds(2)

    if __name__ == "__main__":
        main(random, cartpole.agent(PPO(rollout=64)))
"""
TWO = """
    from shared import cartpole

    from rldsl import DQN, Random, main

    if __name__ == "__main__":
        main(cartpole.agent(DQN(learning_starts=64)), cartpole.agent(Random()).seeds(3).named("cartpole/baseline"))
"""
SHARED = """
    from rldsl import Classic, experiment

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(100).frames(400)
"""


@pytest.fixture
def files(project: Project) -> Project:
    project.write(ONE, "one.py")
    project.write(TWO, "two.py")
    project.write(SHARED, "shared.py")
    return project


def test_a_line_for_each_experiment_and_totals(files: Project) -> None:
    said = files.rldsl("plan", "one.py", "shared.py", "two.py")
    assert said.returncode == 0, said.stderr
    rows = [line.split() for line in said.stdout.splitlines()]
    assert rows[0] == ["experiment", "trials", "sessions", "frames", "hours"]
    assert rows[1] == ["cartpole/random", "1", "2", "800", "~0.00"]
    assert [row[0] for row in rows[1:5]] == ["cartpole/random", "cartpole/ppo", "cartpole/dqn", "cartpole/baseline"]
    assert rows[4][1:3] == ["1", "1"]  # two of its three sessions are those of cartpole/random
    assert said.stdout.splitlines()[5].startswith("4 experiments, 5 sessions: 2k frames to go, about 0 core hours")


def test_sessions_that_are_done_leave_the_estimate(files: Project) -> None:
    assert files.python("one.py", "train", "--only", "random").returncode == 0
    lines = json.loads(files.rldsl("plan", "one.py", "two.py", "--json").stdout)
    assert {line["experiment"]: line["states"] for line in lines}["cartpole/random"] == {"done": 2}
    assert lines[0]["frames"] == 0


def test_options_apply_to_all_files(files: Project) -> None:
    said = files.rldsl("plan", "one.py", "two.py", "--only", "random", "--only", "dqn", "--frames", "1e3").stdout
    assert [line.split()[:4] for line in said.splitlines()[1:3]] == [
        ["cartpole/random", "1", "2", "2k"],
        ["cartpole/dqn", "1", "1", "1k"],
    ]


def test_a_name_in_two_files_and_files_without_experiments_are_refused(files: Project) -> None:
    said = files.rldsl("plan", "one.py", "one.py")
    assert (said.returncode, "two experiments are called cartpole/random" in said.stderr) == (2, True)
    files.write(TWO.replace("cartpole/baseline", "cartpole/random"), "three.py")
    said = files.rldsl("plan", "one.py", "two.py", "three.py", "--only", "random")
    assert re.search(r"called cartpole/random \(one.py:\d+ and three.py:\d+\); give one", said.stderr)
    said = files.rldsl("plan", "shared.py", "shared.py")
    assert (said.returncode, "none of the 2 files declares an experiment" in said.stderr) == (2, True)


def test_the_whole_benchmark_suite_is_planned_in_seconds() -> None:
    files = sorted(str(path) for path in (ROOT / "experiments").glob("**/*.py"))
    start = time.monotonic()
    said = subprocess.run(
        [str(Path(sys.executable).with_name("rldsl")), "plan", *files, "--runs", "none", "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert len(json.loads(said.stdout)) > 500
    assert time.monotonic() - start < 20  # 2 s on a machine that does nothing else
