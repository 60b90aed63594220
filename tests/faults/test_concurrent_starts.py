"""Many processes start the same session at the same moment: one trains it, the others wait or are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.record import FULL, cases, record
from tests.project import Project, environment, events, work
from tests.train.attempts import Attempts
from tests.train.packs import CASES, session, train

EXPERIMENT = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(500).seeds(2)
    random = cartpole.agent(Random()).frames(4000).checkpoint_every(1000)

    if __name__ == "__main__":
        main(random)
"""


def test_workers_that_start_at_once(tmp_path: Path) -> None:
    one = session(*CASES["ppo"], frames=1024, checkpoint_every=256)
    whole = train(tmp_path / "whole", one).directories[0]
    number, rounds = 8 if FULL else 4, cases(1, 10)
    codes: list[int | None] = []
    for round_ in range(rounds):
        attempts = Attempts(tmp_path / f"runs{round_}", one)
        wait = "0" if round_ % 2 else "60"
        processes = [attempts.start("--wait", wait) for _ in range(number)]
        for process in processes:
            process.join(120)
        ended = [process.exitcode for process in processes]
        assert set(ended) <= {0, 1} and 0 in ended
        assert work(attempts.paths[0]) == work(whole.path)
        lives = [event["event"] for event in events(attempts.paths[0]) if event["event"] in ("started", "done")]
        assert lives == ["started", "done"] * (len(lives) // 2), "one after the other"
        codes += ended
    record("concurrent workers", starts=len(codes), refused=codes.count(1), different=0)


@pytest.mark.skipif(not FULL, reason="part of `make faults`")
def test_commands_that_start_at_once(tmp_path: Path) -> None:
    project, alone = Project(tmp_path / "many"), Project(tmp_path / "alone")
    for one in (project, alone):
        one.write(EXPERIMENT)
    assert alone.python("exp.py").returncode == 0
    number = 6
    commands = [
        subprocess.Popen(
            [sys.executable, "exp.py"], cwd=project.root, env=environment(), stdout=subprocess.PIPE, text=True
        )
        for _ in range(number)
    ]
    said = [command.communicate(timeout=300)[0] for command in commands]
    assert not any("Traceback" in text for text in said)
    assert [work(path) for path in project.sessions] == [work(path) for path in alone.sessions]
    record("concurrent commands", starts=number, different=0)
