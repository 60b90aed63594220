"""The light process around a training: it ends as its child ends, and hands a warning on."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

from rldsl.launch.local import STOPPED
from rldsl.launch.slurm import SlurmTask
from rldsl.launch.task import Task
from tests.project import until

LISTENS = """
import signal, sys, time
signal.signal(signal.SIGUSR2, lambda *_: (print("saved"), sys.exit(3)))
signal.signal(signal.SIGTERM, lambda *_: (print("saved"), sys.exit(3)))
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


def test_a_checkpoint_stops_the_child_and_gives_the_task_for_its_next_life(tmp_path: Path) -> None:
    one = task(tmp_path, LISTENS)
    one._child = one._start()
    until(lambda: "ready" in log(tmp_path))
    again = one.checkpoint()
    assert "saved" in log(tmp_path)
    assert again.function == one and again.function._child is None
    assert one._child.wait() == STOPPED


def test_a_checkpoint_after_the_end_is_no_error(tmp_path: Path) -> None:
    one = task(tmp_path, "pass")
    one._child = one._start()
    one._child.wait()
    assert one.checkpoint().function == one


def test_what_is_pickled_holds_words_alone(tmp_path: Path) -> None:
    one = SlurmTask(("python", "-m", "rldsl.train"), str(tmp_path))
    data = cloudpickle.dumps(one)
    assert pickle.loads(data) == one
    assert len(data) < 500, "by reference to its class"
