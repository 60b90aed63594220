"""The light process around a training: it ends as its child ends, and hands a warning on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

from rldsl import Local
from rldsl.launch.jobs import Job
from rldsl.launch.local import LocalRun
from rldsl.launch.node import Node, NodePack
from rldsl.launch.process_end import STOPPED
from rldsl.launch.slurm_job import SlurmTask, read_task, write_jobs
from rldsl.launch.task import Task
from rldsl.store.errors import CannotWrite
from rldsl.train.output import copy_output
from tests.project import until

LISTENS = """
import signal, sys, time
signal.signal(signal.SIGUSR2, lambda *_: (print("saved"), sys.exit(3)))
signal.signal(signal.SIGTERM, lambda *_: (print("saved"), sys.exit(3)))
print("ready", flush=True)
time.sleep(60)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


def task(folder: Path, code: str) -> Task:
    return Task((sys.executable, "-c", code), str(folder / "session"), str(folder), {"WORD": "value"})


def run(one: Task, folder: Path) -> subprocess.Popen[bytes]:
    """The task in a process of its own, as a queue runs it."""
    (folder / "task").write_bytes(cloudpickle.dumps(one))
    code = f"import pickle, sys; sys.exit(pickle.load(open({str(folder / 'task')!r}, 'rb'))())"
    return subprocess.Popen([sys.executable, "-c", code])


def log(folder: Path) -> str:
    path = folder / "session" / "log.txt"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", STOPPED),
        ("raise SystemExit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os.abort()", -signal.SIGABRT),
    ],
)
def test_it_ends_as_its_child(tmp_path: Path, code: str, end: int) -> None:
    assert run(task(tmp_path, code), tmp_path).wait(30) == end


def test_its_childs_output_is_the_log_of_the_session(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.environ['WORD'], os.environ['OMP_NUM_THREADS'])"
    assert run(task(tmp_path, code), tmp_path).wait(30) == 0
    assert log(tmp_path).split() == [str(tmp_path), "value", "1"]


def test_told_to_end_it_lets_its_child_checkpoint(tmp_path: Path) -> None:
    process = run(task(tmp_path, LISTENS), tmp_path)
    until(lambda: "ready" in log(tmp_path))
    process.terminate()
    assert process.wait(30) == STOPPED
    assert "saved" in log(tmp_path)


def test_a_child_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGUSR2, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    )
    one = task(tmp_path, deaf)
    one._child = one._start()
    until(lambda: "ready" in log(tmp_path))
    one.stop_child(seconds=0.3)
    assert one._wait(one._child) == -signal.SIGKILL and one._killed


def test_asking_a_child_to_stop_after_its_end_is_no_error(tmp_path: Path) -> None:
    one = task(tmp_path, "pass")
    one._child = one._start()
    one._child.wait()
    one.stop_child()


def test_the_jobs_of_an_array_find_their_commands(tmp_path: Path) -> None:
    jobs = [
        Job((f"a-s{n}",), tmp_path / str(n), ("python", str(n)), directories=(tmp_path / str(n),)) for n in range(3)
    ]
    write_jobs(jobs, tmp_path, 1000)
    assert read_task(tmp_path, 1000, 2) == SlurmTask(
        ("python", "2"), str(tmp_path / "2"), directories=(str(tmp_path / "2"),)
    )


@pytest.fixture
def handlers() -> Iterator[None]:
    """Puts back the handlers of signals that a task installs."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path, handlers: None) -> None:
    """Neither by the process of a job, nor by one of this machine, nor by one of several of a job."""
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    for name in ("session", "local", "node"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.txt").symlink_to(precious)
    with pytest.raises(CannotWrite, match=r"session/log\.txt: it is a symbolic link, remove it"):
        task(tmp_path, "print('overwritten')")()
    command = (sys.executable, "-c", "print('overwritten')")
    with pytest.raises(CannotWrite, match="symbolic link"):
        LocalRun([Job(("a",), tmp_path / "local", command)], Local()).poll()
    pack = NodePack(command, (tmp_path / "x-1234567890ab" / "seed-0",), (0,), None, 1, 0)
    pack.directories[0].parent.mkdir()
    (tmp_path / "node").rename(pack.directories[0])
    assert Node([pack], 1).run() == 1
    with pytest.raises(CannotWrite, match="symbolic link"):
        copy_output([tmp_path / "local" / "log.txt"])
    assert precious.read_text() == "mine\n"
