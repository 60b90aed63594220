"""`tensorboard` starts the real one, with the chosen sessions under the names of their experiments."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rldsl.report.tensorboard import LogDirectory, run_names
from rldsl.store.runs import Runs
from tests.cli.conftest import Trained
from tests.project import Project, command_line, environment, until
from tests.report.test_trial_curves import A2C_ONE, CLIPS, PPO_ONE, written


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(port: int, path: str) -> Any:
    """The JSON that TensorBoard answers; None while it does not."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
            return json.load(answer)
    except OSError:
        return None


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def start(trained: Trained) -> Iterator[Callable[..., tuple[subprocess.Popen[bytes], int]]]:
    processes = []

    def started(*arguments: str) -> tuple[subprocess.Popen[bytes], int]:
        port = free_port()
        command = [sys.executable, "-c", "from rldsl.cli import run; run()", "tensorboard", *arguments]
        processes.append(
            subprocess.Popen(
                [*command, "--port", str(port)],
                cwd=trained.project.root,
                env=environment() | {"TMPDIR": str(trained.project.root)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return processes[-1], port

    yield started
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_it_shows_the_sessions_by_experiment_until_it_is_interrupted(trained: Trained, start: Any) -> None:
    process, port = start("runs", "--only", "random")
    names = ["cartpole/random/seed-0", "cartpole/random/seed-1"]
    until(lambda: sorted(ask(port, "data/runs") or ()) == names, 60)
    tags = until(lambda: (ask(port, "data/plugin/scalars/tags") or {}).get(names[0]), 60)
    assert {"charts/episode_return", "charts/length", "time/fps"} <= set(tags)
    assert until(lambda: (ask(port, "data/plugin/text/tags") or {}).get(names[0]), 60) == ["settings"]
    (server,) = children(process.pid)
    (links,) = trained.project.root.glob("rldsl-tensorboard-*")
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C reaches the whole group
    assert process.wait(30) == 0
    assert "tensorboard" not in command_line(server) and not links.exists()


def test_terminating_it_leaves_nothing_behind(trained: Trained, start: Any) -> None:
    process, port = start()
    until(lambda: ask(port, "data/runs"), 60)
    (server,) = children(process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert "tensorboard" not in command_line(server) and not list(trained.project.root.glob("rldsl-tensorboard-*"))


def test_no_sessions_are_a_sentence(project: Project) -> None:
    ran = project.rldsl("tensorboard")
    assert (ran.returncode, ran.stderr) == (2, "error: there are no sessions of runs\n")


def test_runs_are_named_by_experiment_settings_and_seed(tmp_path: Path) -> None:
    written(tmp_path, CLIPS, A2C_ONE)
    assert sorted(run_names(list(Runs(tmp_path).sessions())).values()) == [
        "cartpole/a2c/seed-0",
        "cartpole/a2c/seed-1",
        "cartpole/clips/clip=0.1/seed-0",
        "cartpole/clips/clip=0.1/seed-1",
        "cartpole/clips/clip=0.3/seed-0",
        "cartpole/clips/clip=0.3/seed-1",
    ]


def test_sessions_that_start_later_are_linked(tmp_path: Path) -> None:
    logs = LogDirectory()
    written(tmp_path, PPO_ONE)
    assert logs.add(list(Runs(tmp_path).sessions())) == 2
    written(tmp_path, A2C_ONE)
    assert logs.add(list(Runs(tmp_path).sessions())) == 4
    links = sorted(logs.path.glob("*/*/*"))
    assert [str(link.relative_to(logs.path)) for link in links] == [
        f"cartpole/{name}/seed-{seed}" for name in ("a2c", "ppo") for seed in (0, 1)
    ]
    assert {link.readlink() for link in links} == {one.tensorboard.resolve() for one in Runs(tmp_path).sessions()}
    logs.close()
    assert not logs.path.exists()
