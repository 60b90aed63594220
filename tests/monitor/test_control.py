"""The keys c, r, d, t and y: what they ask, and what they do; with real processes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from rldsl.launch.resume import repeat_command, resume_job
from rldsl.launch.stop import ask_to_stop
from rldsl.monitor.control import resume_request, stop_request
from rldsl.monitor.screens.dialogs import Confirm, Diff
from rldsl.monitor.session_index import SessionIndex
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.store.errors import StoreError
from rldsl.store.files import replace_json
from rldsl.store.session_dir import SessionDir
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import cartpole, sessions_of, training
from tests.project import Project, until

EXPERIMENT = """
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(400)
    random = cartpole.agent(Random()).frames(3e7).seeds(2)

    if __name__ == "__main__":
        main(random)
"""


def sessions_by_path(sample: SampleRuns) -> dict[str, SessionSnapshot]:
    return {session.path: session for session in SessionIndex(sample.runs).refresh().updated}


def notifications(driver: Driver) -> str:
    """All notifications."""
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
        assert "asked 2 sessions to checkpoint and stop" in notifications(driver)
        until(lambda: all(one.state() == "resume" for one in directories))
        await driver.refresh()
        await driver.press("r")
        assert "Resume 2 sessions?" in driver.text
        assert "resumes from its last checkpoint" in driver.text
        await driver.press("y")
        assert "resumed 2 sessions" in notifications(driver)
        until(lambda: driver.app.resumer.poll() == [] and all(one.state() == "running" for one in directories))
        await driver.refresh_until(lambda: driver.text.count("● running") == 2)
        for one in directories:
            ask_to_stop(one)
        until(lambda: all(one.state() == "resume" for one in directories))

    drive(project.runs, scenario)
    assert all(one.read_state().attempts == 2 for one in directories)


def test_stop_names_the_other_sessions_of_a_process(sample: SampleRuns) -> None:
    with training(sample.runs, *sessions_of(cartpole("pack").frames(2e5))) as process:
        first, other = process.directories
        sessions = sessions_by_path(sample)
        chosen = sessions[sample.path(first)]
        request = stop_request([chosen], sessions, sample.runs)
    assert [one.path for one in request.sessions] == [chosen.path]
    assert f"stopped with them:\n  {other.id}" in request.details
    assert sample.alive.id not in request.details, "it has a process of its own"


def test_a_session_on_another_host_is_not_stopped(sample: SampleRuns) -> None:
    replace_json(sample.alive.alive, {"host": "elsewhere", "pid": 1, "start_time": 1.0, "time": 1.0})
    sessions = sessions_by_path(sample)
    request = stop_request(sessions.values(), sessions, sample.runs)
    assert request.sessions == []
    assert f"not stopped:\n  {sample.alive.id}" in request.details
    assert ask_to_stop(sample.alive) == f"{sample.alive.id} runs on elsewhere: stop it there"


def test_finished_sessions_can_be_neither_stopped_nor_resumed(sample: SampleRuns) -> None:
    sessions = sessions_by_path(sample)
    done = [sessions[sample.path(one)] for one in sample.done]
    assert stop_request(done, sessions, sample.runs) is None
    assert resume_request(done, 2) is None
    assert ask_to_stop(sample.done[0]) == f"{sample.done[0].id} does not run any more"

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(one) for one in sample.done}
        await driver.press("c")
        assert "none of the chosen sessions is running" in notifications(driver)
        await driver.press("r")
        assert "none of the chosen sessions was stopped or failed" in notifications(driver)

    drive(sample.runs, scenario)


def test_resume_says_that_some_sessions_have_to_wait(sample: SampleRuns) -> None:
    sessions = sessions_by_path(sample)
    broken = [sessions[sample.path(sample.failed)], sessions[sample.path(sample.stopped)]]
    assert "start only while it is open" in resume_request(broken, 1).details
    assert "start only while it is open" not in resume_request(broken, 2).details


def test_a_session_with_an_incomplete_record_cannot_be_resumed(sample: SampleRuns) -> None:
    sample.stopped.session.write_text('{"experiment": "x"}')
    with pytest.raises(StoreError, match="cannot be resumed from here"):
        resume_job(sample.stopped, sample.runs)


def test_d_shows_the_differences_of_two_sessions(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("j", "d")
        assert "select two sessions with space" in notifications(driver)
        driver.app.selected = {sample.path(sample.done[0]), sample.path(sample.done[2])}
        await driver.press("d")
        assert isinstance(driver.app.screen, Diff)
        assert "agent.clip" in driver.text
        assert "0.1" in driver.line("agent.clip")
        assert "0.3" in driver.line("agent.clip")
        await driver.press("j", "k", "d", "2", "c")
        assert len(driver.app.screen_stack) == 2, "only the keys of the dialog work"
        await driver.press("escape")
        assert not isinstance(driver.app.screen, Diff)

    drive(sample.runs, scenario)


def test_y_copies_a_command_that_repeats_the_session(project: Project) -> None:
    project.write(EXPERIMENT)
    assert project.python("exp.py", "--frames", "2e3", "--seeds", "1").returncode == 0
    (path,) = project.sessions

    async def scenario(driver: Driver) -> None:
        await driver.press("j", "y")
        assert driver.app.clipboard == repeat_command(SessionDir(path), project.runs)
        assert "rldsl.train" in notifications(driver)
        copied.append(driver.app.clipboard)

    copied: list[str] = []
    drive(project.runs, scenario)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(shlex.split(copied[0]), cwd=project.root, env=environment, capture_output=True, check=True)
    (again,) = (project.root / "repeated").glob("*/*/*/metrics.csv")
    assert again.relative_to(project.root / "repeated") == (path / "metrics.csv").relative_to(project.runs)

    def work(file: Path) -> list[list[str]]:
        return [line.split(",")[3:] for line in file.read_text().splitlines()]

    assert work(again) == work(path / "metrics.csv")


def test_t_starts_tensorboard_until_the_monitor_ends(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.done[0])}
        await driver.press("t")
        await driver.until(lambda: "http://127.0.0.1:" in driver.app.clipboard, seconds=90)
        with urllib.request.urlopen(driver.app.clipboard, timeout=60) as answer:
            assert answer.status == 200
        boards.append(driver.app.tensorboard.process)

    boards: list[subprocess.Popen[bytes]] = []
    drive(sample.runs, scenario)
    assert boards[0].poll() is not None
