"""Stopped, killed or failed anywhere: nothing is lost, and going on gives what would have been."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

from tests.project import Project, events, rows, until, work

FRAMES = 150_000
EXPERIMENT = f"""
    from rldsl import Classic, Random, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(500)
    random = cartpole.agent(Random()).frames({FRAMES}).checkpoint_every(2000)

    if __name__ == "__main__":
        main(random)
"""
BROKEN = """
    from rldsl.agents.random import RandomAgent


    class BrokenAgent(RandomAgent):
        def iterate(self, world):
            super().iterate(world)
            if 1 in self.context.seeds and world.frame >= 300:
                raise RuntimeError("the third wheel came off")
"""
WITH_BROKEN = """
    from typing import ClassVar, Literal

    from rldsl import Agent, Classic, experiment, main


    class Broken(Agent, frozen=True):
        '''Fails with the seed 1.'''

        kind: Literal["broken"] = "broken"
        implementation: ClassVar[str] = "broken:BrokenAgent"
        packs: ClassVar[bool] = False


    main(experiment("x").env(Classic("CartPole-v1")).agent(Broken()).frames(1000).seeds(3))
"""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The log points of a session that nobody disturbed."""
    project = Project(tmp_path_factory.mktemp("uninterrupted"))
    project.write(EXPERIMENT)
    ran = project.python("exp.py")
    assert ran.returncode == 0, ran.stderr
    return work(project.session)


def attempts(session: Path) -> int:
    return sum(one["event"] == "started" for one in events(session))


def running(project: Project) -> Path:
    """The only session, once it has written some log points and a checkpoint."""
    session = until(lambda: project.sessions and project.session)
    until(lambda: len(rows(session)) > 20)
    return session


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(
    project: Project, uninterrupted: list[dict[str, str]]
) -> None:
    project.write(EXPERIMENT)
    process = project.start("exp.py", "train", "--set", "budget.checkpoint_every=null")
    session = running(project)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    again = "python exp.py train --set budget.checkpoint_every=null"
    assert said.splitlines()[-1] == f"stopped, all progress is saved; to continue: {again}"
    assert "Traceback" not in said
    assert [one["event"] for one in events(session)] == ["created", "started", "checkpoint", "stopped"]
    stopped_at = events(session)[-1]["frame"]
    assert 0 < stopped_at < FRAMES
    shown = project.python("exp.py", "plan").stdout
    assert re.search(r"resume +[\d.]+k/150k", shown)

    assert project.python(*again.split()[1:]).returncode == 0
    assert attempts(session) == 2
    assert [one["frame"] for one in events(session) if one["event"] == "started"] == [0, stopped_at]
    assert work(session) == uninterrupted


def test_ctrl_c_after_the_last_session_has_ended_does_not_lose_the_table(project: Project) -> None:
    project.write(
        """
        import os, signal

        def interrupt(end):
            os.kill(os.getppid(), signal.SIGINT)
    """,
        "my_hooks.py",
    )
    hooked = EXPERIMENT.replace(f"frames({FRAMES})", "frames(2000).on_end(interrupt)")
    project.write(hooked.replace("    from rldsl", "    from my_hooks import interrupt\n    from rldsl", 1))
    ran = project.python("exp.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "1 session: 1 done"


def test_a_killed_worker_goes_on_from_its_last_checkpoint(
    project: Project, uninterrupted: list[dict[str, str]]
) -> None:
    project.write(EXPERIMENT)
    process = project.start("exp.py")
    session = running(project)
    time.sleep(random.uniform(0, 0.3))
    os.kill(json.loads((session / "alive.json").read_text())["pid"], signal.SIGKILL)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1, "what is not done is not well"
    assert "crashed  cartpole/random seed 0" in said and said.count("killed by SIGKILL (out of memory?)") == 1
    assert events(session)[-1]["event"] == "crashed"
    assert "killed by SIGKILL (out of memory?)" in project.python("exp.py", "status").stdout
    assert "1 session: 1 resume" in said

    assert project.python("exp.py").returncode == 0
    assert attempts(session) == 2
    assert work(session) == uninterrupted


def test_stop_asks_the_sessions_that_run(project: Project) -> None:
    project.write(EXPERIMENT)
    process = project.start("exp.py", "--frames", "1e8")
    session = running(project)
    assert re.search(r"running +[\d.]+k?/100M", project.python("exp.py", "status", "--frames", "1e8").stdout)
    told = project.python("exp.py", "stop", "--frames", "1e8")
    assert told.stdout == "asked 1 session to checkpoint and stop; `resume` continues\n"
    said, _ = process.communicate(timeout=60)
    assert "stopped  cartpole/random seed 0" in said
    assert events(session)[-1]["event"] == "stopped"
    assert project.python("exp.py", "stop").stdout == "nothing is running\n"


def test_stop_also_drops_sessions_that_wait_for_their_turn(project: Project) -> None:
    project.write(EXPERIMENT)
    project.write("from rldsl import Local\nlauncher = Local(parallel=1, members=1)", "one.py")
    options = ("--frames", "1e8", "--seeds", "2")
    process = project.start("exp.py", *options, "--on", "one.py")
    until(lambda: project.sessions and "started" in [event["event"] for event in events(project.sessions[0])])
    assert project.python("exp.py", "stop", *options).stdout.startswith("asked 1 session")
    process.communicate(timeout=60)
    assert [session.name for session in project.sessions] == ["seed-0"], "the other one was not started"

    process = project.start("exp.py", *options, "--on", "one.py")
    until(lambda: attempts(project.sessions[0]) == 2)  # an earlier request does not count
    assert project.python("exp.py", "stop", *options[:2], "--seed", "1").stdout == "nothing is running\n"
    assert project.python("exp.py", "stop", *options[:2], "--seed", "0").stdout.startswith("asked 1 session")
    process.communicate(timeout=60)
    assert len(project.sessions) == 1


def test_a_second_train_leaves_a_running_session_alone(project: Project) -> None:
    project.write(EXPERIMENT)
    process = project.start("exp.py", "--frames", "1e8")
    session = running(project)
    second = project.python("exp.py", "--frames", "1e8")
    assert "1 session running already" in second.stdout
    assert second.returncode == 0
    assert attempts(session) == 1
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)


def test_a_session_that_fails_is_shown_and_the_others_finish(project: Project) -> None:
    project.write(BROKEN, "broken.py")
    project.write(WITH_BROKEN)
    ran = project.python("exp.py")
    assert ran.returncode == 1
    assert ran.stdout.count("RuntimeError: the third wheel came off") == 1, "the reason, once"
    assert 'raise RuntimeError("the third wheel came off")' in ran.stdout, "the last lines of its log"
    assert ran.stdout.splitlines()[-1] == "3 sessions: 2 done, 1 failed"
    assert [events(path)[-1]["event"] for path in project.sessions] == ["done", "failed", "done"]

    again = project.python("exp.py")
    assert again.returncode == 1
    assert "1 session failed before; `resume` retries it" in again.stdout
    assert attempts(project.sessions[1]) == 1

    assert project.python("exp.py", "resume").returncode == 1
    assert attempts(project.sessions[1]) == 2
    project.write(BROKEN.replace("world.frame >= 300", "False"), "broken.py")
    mended = project.python("exp.py", "resume")
    assert mended.returncode == 0
    assert mended.stdout.splitlines()[-1] == "3 sessions: 2 done (other code), 1 done"
    assert [attempts(path) for path in project.sessions] == [1, 3, 1]


def test_a_failed_session_is_left_to_resume_in_a_queue_too(project: Project) -> None:
    project.write(BROKEN, "broken.py")
    project.write(WITH_BROKEN)
    assert project.python("exp.py").returncode == 1
    trained = project.python("exp.py", "train", "--detach")
    assert "1 session failed before; `resume` retries it" in trained.stdout
    assert "submitted" not in trained.stdout and trained.returncode == 0
    resumed = project.python("exp.py", "resume", "--detach")
    assert "submitted 1 session as 1 job to local" in resumed.stdout
    until(lambda: [one["event"] for one in events(project.sessions[1])].count("failed") == 2)
    assert [attempts(path) for path in project.sessions] == [1, 2, 1]


def test_resume_starts_nothing_new(project: Project) -> None:
    project.write(EXPERIMENT)
    ran = project.python("exp.py", "resume")
    assert ran.returncode == 0
    assert project.files() == {"exp.py"}


def test_a_worker_that_cannot_even_begin_is_no_success(project: Project) -> None:
    project.write(WITH_BROKEN)
    ran = project.python("exp.py", "--seeds", "1")
    assert ran.returncode == 1
    assert "Broken cannot run: broken:BrokenAgent was not found" in ran.stdout


@pytest.mark.parametrize("module", ["pydantic", "typer"], ids=["package", "commands"])
def test_while_modules_are_imported(project: Project, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    project.write("raise KeyboardInterrupt", f"first/{module}.py")
    monkeypatch.setenv("PYTHONPATH", str(project.root / "first"))
    ran = project.rldsl("list")
    assert ran.returncode in (130, -signal.SIGINT), "a shell shows both as 130"
    assert (ran.stdout, ran.stderr) == ("", "")
