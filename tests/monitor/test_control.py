"""c, r, d, t, y: what they say before, what they do, and to whom; with real processes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from project import Project, until

from rldsl.launch.resume import repeat_command, resume_job
from rldsl.launch.stop import ask_to_stop
from rldsl.monitor.control import resume_request, stop_request
from rldsl.monitor.facts import Index
from rldsl.monitor.screens.dialogs import Confirm, Diff
from rldsl.store.errors import StoreError
from rldsl.store.files import replace_json
from rldsl.store.session_dir import SessionDir
from tests.monitor.conftest import House
from tests.monitor.drive import Driver, drive

EXPERIMENT = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(400)
    random = cartpole.agent(Random()).frames(3e7).seeds(2)

    if __name__ == "__main__":
        main(random)
"""


def shown(driver: Driver) -> str:
    """What was said in a corner of the screen."""
    return " ".join(str(one.message) for one in driver.app._notifications)


def test_stop_and_resume_act_on_real_processes(project: Project) -> None:
    project.write(EXPERIMENT)
    project.start("exp.py")
    until(lambda: len(project.sessions) == 2 and all((one / "metrics.csv").exists() for one in project.sessions))
    directories = [SessionDir(one) for one in project.sessions]

    async def scenario(driver: Driver) -> None:
        assert "2 selected" not in driver.text
        await driver.press("c")
        assert isinstance(driver.app.screen, Confirm)
        assert "Stop 2 sessions?" in driver.text
        assert "Nothing is lost" in driver.text
        await driver.press("n")
        assert all(one.state() == "running" for one in directories)
        await driver.press("c", "y")
        assert "asked 2 to checkpoint and stop" in shown(driver)
        until(lambda: all(one.state() == "resume" for one in directories))
        await driver.look()
        await driver.press("r")
        assert "Resume 2 sessions?" in driver.text
        assert "goes on from its last checkpoint" in driver.text
        await driver.press("y")
        assert "resumed 2" in shown(driver)
        until(lambda: driver.app.resumer.poll() == [] and all(one.state() == "running" for one in directories))
        await driver.look_until(lambda: driver.text.count("● running") == 2)
        for one in directories:
            ask_to_stop(one)
        until(lambda: all(one.state() == "resume" for one in directories))

    drive(project.runs, scenario)
    assert all(one.read_state().attempts == 2 for one in directories)


def test_a_process_that_trains_others_too_is_named_before_it_is_stopped(house: House) -> None:
    seen = {one.path: one for one in Index(house.runs).look().seen}
    alive, other = seen[house.path(house.alive)], house.stopped
    with other.claim():
        seen = {one.path: one for one in Index(house.runs).look().seen}
        request = stop_request([alive], seen, house.runs)
    assert [one.path for one in request.sessions] == [alive.path]
    assert f"stopped with them:\n  {other.id}" in request.what


def test_a_session_of_another_host_is_left_alone(house: House) -> None:
    replace_json(house.alive.alive, {"host": "elsewhere", "pid": 1, "start_time": 1.0, "time": 1.0})
    seen = {one.path: one for one in Index(house.runs).look().seen}
    request = stop_request(seen.values(), seen, house.runs)
    assert request.sessions == []
    assert f"left alone:\n  {house.alive.id}" in request.what
    assert ask_to_stop(house.alive) == f"{house.alive.id} runs on elsewhere: stop it there"


def test_what_does_not_run_cannot_be_stopped_and_what_is_done_not_resumed(house: House) -> None:
    seen = {one.path: one for one in Index(house.runs).look().seen}
    done = [seen[house.path(one)] for one in house.done]
    assert stop_request(done, seen, house.runs) is None
    assert resume_request(done, 2) is None
    assert ask_to_stop(house.done[0]) == f"{house.done[0].id} does not run any more"

    async def scenario(driver: Driver) -> None:
        driver.app.focus_on([house.path(one) for one in house.done])
        await driver.press("c")
        assert "none of the chosen sessions is running" in shown(driver)
        await driver.press("r")
        assert "none of the chosen sessions was stopped or failed" in shown(driver)

    drive(house.runs, scenario)


def test_those_that_have_to_wait_are_said_to_wait(house: House) -> None:
    seen = {one.path: one for one in Index(house.runs).look().seen}
    broken = [seen[house.path(house.failed)], seen[house.path(house.stopped)]]
    assert "started while it is open" in resume_request(broken, 1).what
    assert "started while it is open" not in resume_request(broken, 2).what


def test_a_record_that_says_too_little_cannot_be_resumed(house: House) -> None:
    house.stopped.session.write_text('{"experiment": "x"}')
    with pytest.raises(StoreError, match="has no"):
        resume_job(house.stopped, house.runs)


def test_d_shows_what_differs_between_two(house: House) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("j", "d")
        assert "select two sessions with space" in shown(driver)
        driver.app.selected = {house.path(house.done[0]), house.path(house.done[2])}
        await driver.press("d")
        assert isinstance(driver.app.screen, Diff)
        assert "agent.clip" in driver.text
        assert "0.1" in driver.line("agent.clip")
        assert "0.3" in driver.line("agent.clip")
        await driver.press("j", "k", "d", "2", "c")
        assert len(driver.app.screen_stack) == 2, "only the keys of the diff count"
        await driver.press("escape")
        assert not isinstance(driver.app.screen, Diff)

    drive(house.runs, scenario)


def test_y_copies_a_command_that_trains_the_same_session_again(project: Project) -> None:
    project.write(EXPERIMENT)
    assert project.python("exp.py", "--frames", "2e3", "--seeds", "1").returncode == 0
    (path,) = project.sessions

    async def scenario(driver: Driver) -> None:
        await driver.press("j", "y")
        assert driver.app.clipboard == repeat_command(SessionDir(path), project.runs)
        assert "--plan" in shown(driver)
        copied.append(driver.app.clipboard)

    copied: list[str] = []
    drive(project.runs, scenario)
    where, _, what = copied[0].partition(" && ")
    assert shlex.split(where) == ["cd", str(project.root)]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(shlex.split(what), cwd=project.root, env=environment, capture_output=True, check=True)
    (again,) = (project.root / "repeated").glob("*/*/*/metrics.csv")
    assert again.relative_to(project.root / "repeated") == (path / "metrics.csv").relative_to(project.runs)

    def work(file: Path) -> list[list[str]]:
        return [line.split(",")[3:] for line in file.read_text().splitlines()]

    assert work(again) == work(path / "metrics.csv")


def test_t_starts_a_tensorboard_that_ends_with_the_monitor(house: House) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.focus_on([house.path(house.done[0])])
        await driver.press("t")
        await driver.until(lambda: "http://127.0.0.1:" in driver.app.clipboard, seconds=90)
        with urllib.request.urlopen(driver.app.clipboard, timeout=60) as answer:
            assert answer.status == 200
        boards.append(driver.app.board.process)

    boards: list[subprocess.Popen[bytes]] = []
    drive(house.runs, scenario)
    assert boards[0].poll() is not None
