"""Processes of every kind are killed at random moments: what follows gives the result of an undisturbed run.

The long version kills 200 times: 90 workers, 30 commands in the foreground, 30 supervisors of detached runs, 30 drivers
of searches (with their workers), 20 monitors.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.record import cases, record
from tests.launch.coin import write
from tests.launch.test_search_kills import METHODS, SLEEP, Killer, check_decisions, check_results, check_sessions
from tests.monitor.terminal import Terminal
from tests.project import Project, command_line, rows, until, work
from tests.train.attempts import Attempts
from tests.train.packs import CASES, session, train

EXPERIMENT = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(100).seeds(2)
    random = cartpole.agent(Random()).frames(10_000).checkpoint_every(400)

    if __name__ == "__main__":
        main(random)
"""


@pytest.mark.timeout(600)
def test_workers(tmp_path: Path) -> None:
    one = session(*CASES["ppo"], frames=4096, log_every=64, checkpoint_every=192)
    whole = train(tmp_path / "whole", one).directories[0]
    stream, left, number = random.Random("workers"), cases(3, 90), 0
    kills = left
    while left:
        attempts = Attempts(tmp_path / f"runs{number}", one)
        while left:
            process, path = attempts.start(), attempts.paths[0]
            points = len(rows(path)) + stream.randrange(12)  # none: it is killed while it starts
            until(lambda: len(rows(path)) >= points or not process.is_alive())  # noqa: B023
            process.join(stream.uniform(0.0, 0.02))
            process.kill()
            process.join()
            if process.exitcode != -signal.SIGKILL:
                break
            left -= 1
        assert attempts.run_to_end() == 0
        assert work(attempts.paths[0]) == work(whole.path)
        number += 1
    record("random kills, workers", kills=kills, sessions=number, different=0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("undisturbed"))
    project.write(EXPERIMENT)
    assert project.python("exp.py").returncode == 0
    return project


def finish(project: Project, undisturbed: Project) -> None:
    """Waits for processes that outlive the one that was killed, trains the rest, and compares."""
    until(lambda: not processes_of(project), 60.0)
    ended = project.python("exp.py")
    assert ended.returncode == 0 and "Traceback" not in ended.stdout + ended.stderr
    assert [work(path) for path in project.sessions] == [work(path) for path in undisturbed.sessions]


def processes_of(project: Project) -> list[int]:
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [pid for pid in pids if str(project.root) in command_line(pid)]


def log_points(project: Project) -> int:
    return sum(len(rows(path)) for path in project.sessions)


def kill_again_and_again(
    project: Project, undisturbed: Project, kills: int, strike: Callable[[random.Random, int], bool]
) -> None:
    """Strikes until it has killed so often; compares with the undisturbed run after every fourth kill.

    `strike` gets the number of log points at which it kills, and returns whether there was something to kill.
    """
    stream, left = random.Random(kills), kills
    while left:
        for _ in range(min(4, left)):
            goal = log_points(project) + stream.choice((0, 1, stream.randrange(2, 40)))
            if not strike(stream, goal):
                break  # it was faster
            left -= 1
        finish(project, undisturbed)
        project.runs.rename(project.root / f"runs-{left}-{time.monotonic_ns()}")


@pytest.mark.timeout(1200)
def test_commands_in_the_foreground(tmp_path: Path, undisturbed: Project) -> None:
    project, kills = Project(tmp_path), cases(1, 30)
    project.write(EXPERIMENT)

    def strike(stream: random.Random, goal: int) -> bool:
        command = project.start("exp.py")
        until(lambda: log_points(project) >= goal or command.poll() is not None, 120.0)
        with suppress(subprocess.TimeoutExpired):
            command.wait(stream.uniform(0.0, 0.05))
        command.kill()
        command.communicate()
        return command.returncode == -signal.SIGKILL

    kill_again_and_again(project, undisturbed, kills, strike)
    record("random kills, foreground", kills=kills, different=0)


@pytest.mark.timeout(1200)
def test_supervisors_of_detached_runs(tmp_path: Path, undisturbed: Project) -> None:
    project, kills = Project(tmp_path), cases(1, 30)
    project.write(EXPERIMENT)

    def strike(stream: random.Random, goal: int) -> bool:
        started = project.python("exp.py", "--detach")
        assert "Traceback" not in started.stdout + started.stderr
        until(lambda: log_points(project) >= goal or not supervisors(project), 120.0)
        time.sleep(stream.uniform(0.0, 0.05))
        alive = supervisors(project)
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(alive)

    kill_again_and_again(project, undisturbed, kills, strike)
    record("random kills, supervisors of detached runs", kills=kills, different=0)


def supervisors(project: Project) -> list[int]:
    """The live processes that look after detached workers."""
    pids = [json.loads(path.read_text()).get("pid", 0) for path in project.runs.glob(".jobs/*/keeper.json")]
    return [pid for pid in pids if pid and str(project.root) in command_line(pid)]


@pytest.mark.timeout(1200)
def test_drivers_of_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short version is tests/launch/test_search_kills.py."""
    kills = left = cases(0, 30)
    if not kills:
        pytest.skip("part of `make faults`")
    undisturbed = Project(tmp_path / "undisturbed")
    write(undisturbed, METHODS["asha"])
    assert undisturbed.python("exp.py", "search").returncode == 0
    monkeypatch.setenv("COIN_SLEEP", SLEEP)
    searches = 0
    while left:
        killed = Project(tmp_path / f"killed-{searches}")
        write(killed, METHODS["asha"])
        killer = Killer(killed, f"faults-{searches}")
        killer.run(left)
        left, searches = left - killer.kills.total(), searches + 1
        check_decisions(killed)
        check_sessions(killed)
        check_results(killed, undisturbed)
    record("random kills, drivers of searches", kills=kills, searches=searches, different=0)


@pytest.mark.timeout(300)
def test_monitors(undisturbed: Project) -> None:
    """A monitor only reads: however it ends, the run directory is as it was."""
    stream, kills = random.Random("monitors"), cases(1, 20)
    before = {path: path.read_bytes() for path in undisturbed.runs.rglob("*") if path.is_file()}
    for _ in range(kills):
        monitor = Terminal("watch", undisturbed.runs)
        with suppress(Exception):
            monitor.process.wait(stream.uniform(0.3, 2.5))
        monitor.process.kill()
        monitor.process.wait()
        monitor.close()
    assert {path: path.read_bytes() for path in undisturbed.runs.rglob("*") if path.is_file()} == before
    record("random kills, monitors", kills=kills, different=0)
