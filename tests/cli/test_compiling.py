"""Compilation is a visible state, ends at once when asked to, and happens once for all processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.project import Project, events, rows, until, work

EXPERIMENT = """
    from rldsl import DQN, MLP, Classic, experiment, main

    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=2)).log_every(100).seeds(2)
    dqn = cartpole.agent(DQN(net=MLP((8,)), learning_starts=200, batch=8)).frames(1000).compute(compile="on")

    if __name__ == "__main__":
        main(dqn)
"""
PROMPT = 10.0
"""Seconds within which Ctrl-C ends a command that compiles; on a machine without other work, well under 2."""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def libraries_built(session: Path) -> list[bool]:
    """For each compilation of a session, whether its process built the library."""
    return [one["built"] for one in events(session) if one["event"] == "compiled"]


def compilers(process: int) -> list[psutil.Process]:
    """The C++ compilers below a process."""
    found = []
    for one in psutil.Process(process).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += [one] if one.name() == "cc1plus" else []
    return found


def compiling(project: Project) -> bool:
    sessions = project.sessions
    latest = [(events(session) or [{"event": None}])[-1]["event"] for session in sessions]
    return latest == ["compiling", "compiling"]


def test_compiling_is_shown_ends_at_once_and_happens_once(project: Project) -> None:
    project.write(EXPERIMENT)
    process = project.start("exp.py")
    running = until(lambda: compiling(project) and compilers(process.pid), 60)
    status = project.rldsl("status", "exp.py")
    assert status.stdout.count("compiling ") == 2 and "fps" not in status.stdout
    listed = json.loads(project.rldsl("list", "--json").stdout)
    assert all(one["state"] == "running" and one["compiling"] > 0 for one in listed)
    interrupted = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert time.monotonic() - interrupted < PROMPT
    assert process.returncode == 130 and "cartpole/dqn seed 0: compiling" in said and "Traceback" not in said
    for session in project.sessions:
        assert events(session)[-1]["event"] == "stopped"
        assert events(session)[-1]["reason"] == "asked to stop (SIGTERM) while compiling"

    assert not psutil.wait_procs(running, timeout=1)[1]

    ran = project.python("exp.py")
    assert ran.returncode == 0, ran.stdout
    assert "compiled in " in ran.stdout
    assert sorted(built for session in project.sessions for built in libraries_built(session)) == [False, True]
    resumed = [work(session) for session in project.sessions]
    assert all(not rows(session)[1]["fps"] and float(rows(session)[-1]["fps"]) > 0 for session in project.sessions)

    assert project.python("exp.py", "--runs", "undisturbed").returncode == 0
    undisturbed = sorted(path.parent for path in (project.root / "undisturbed").glob("*/*/*/session.json"))
    assert [work(session) for session in undisturbed] == resumed
    assert not any(libraries_built(session) for session in undisturbed), "the library is in the cache"
