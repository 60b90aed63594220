"""This machine as a queue: jobs go on without the command that submitted them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rldsl.launch import machine
from rldsl.launch.job_records import new_submission
from rldsl.launch.jobs import Job, Resources
from rldsl.launch.local import LocalRun, processes
from rldsl.launch.local_backend import LocalBackend
from rldsl.spec.launcher import Local
from tests.project import until

SLEEP = "import time; print('ready', flush=True); time.sleep(60)"


def job(root: Path, name: str, code: str, gpus: int = 0) -> Job:
    return Job((name,), root / name, (sys.executable, "-c", code), Resources(1, gpus), cwd=root)


def states(backend: LocalBackend, ids: list[str]) -> list[tuple[str, str]]:
    found = backend.states(ids)
    return [(found[id].state, found[id].reason) for id in ids]


def test_jobs_run_one_after_the_other_and_each_end_is_told(tmp_path: Path) -> None:
    backend = LocalBackend(Local(parallel=1), tmp_path)
    jobs = [job(tmp_path, str(code), f"raise SystemExit({code})") for code in (0, 7, 3)]
    jobs.append(job(tmp_path, "killed", "import os; os.kill(os.getpid(), 9)"))
    ids = backend.submit(jobs, tmp_path, new_submission(tmp_path))
    until(lambda: not any(state.live for state in backend.states(ids).values()))
    assert states(backend, ids) == [
        ("done", ""),
        ("failed", "exit 7"),
        ("cancelled", ""),
        ("failed", "killed by SIGKILL (out of memory?)"),
    ]


def test_cancelling_ends_what_runs_and_what_waits(tmp_path: Path) -> None:
    backend = LocalBackend(Local(parallel=1), tmp_path)
    ids = backend.submit([job(tmp_path, str(n), SLEEP) for n in range(3)], tmp_path, new_submission(tmp_path))
    until(lambda: states(backend, ids)[0][0] == "running")
    assert [state for state, _ in states(backend, ids)] == ["running", "pending", "pending"]
    backend.cancel([ids[1]])
    until(lambda: states(backend, ids)[1][0] == "cancelled")
    backend.cancel([ids[2], ids[0]])
    until(lambda: not any(state.live for state in backend.states(ids).values()))
    assert states(backend, ids)[2][0] == "cancelled" and not (tmp_path / "2").exists(), "it never began"


def test_jobs_whose_supervisor_is_gone_have_failed(tmp_path: Path) -> None:
    backend = LocalBackend(Local(), tmp_path)
    folder = new_submission(tmp_path)
    ids = backend.submit([job(tmp_path, "a", "pass")], tmp_path, folder)
    until(lambda: states(backend, ids)[0][0] == "done")
    (folder / "story.jsonl").unlink()
    supervisor = json.loads((folder / "keeper.json").read_text())
    (folder / "keeper.json").write_text(json.dumps({**supervisor, "pid": 2**22 + 1}))
    assert states(backend, ids) == [("failed", "the process that supervised it ended")]
    assert backend.states(["never/0"])["never/0"].state == "unknown"


def test_gpus_are_handed_out_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    code = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
    jobs = [job(tmp_path, str(n), code, gpus=1) for n in range(4)]
    run = LocalRun(jobs, Local())
    assert run.parallel == 2, "one for each GPU"
    run.poll()
    assert sorted(run.gpus.values()) == ["4", "7"]
    until(lambda: run.poll() is not None and not run.active)
    assert sorted((one.directory / "log.txt").read_text().strip() for one in jobs[:2]) == ["4", "7"]


def test_processes_fit_into_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.setattr(machine, "memory_gb", lambda: 10.0)
    assert processes(Local()) == 8
    assert processes(Local(memory_gb=4)) == 2
    assert processes(Local(memory_gb=40)) == 1
    assert processes(Local(memory_gb=40, parallel=3)) == 3
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert processes(Local(), [Resources(1, 1)]) == 8, "where there is none, by cores"
    assert processes(Local(), [Resources(cpus=3)]) == 2
    assert processes(Local(), [Resources(memory_gb=4.5)]) == 2
    assert processes(Local(memory_gb=1), [Resources(memory_gb=4.5)]) == 8
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert processes(Local(per_gpu=3), [Resources(1, 1)]) == 6
    assert processes(Local(), [Resources(1, 1), Resources(2)]) == 4, "those that need no GPU have the cores"


def test_processes_share_gpus_and_others_do_not_wait_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    wait = "import time; time.sleep(60)"
    jobs = [job(tmp_path, str(n), wait, gpus=1) for n in range(5)] + [job(tmp_path, "cpu", wait)]
    run = LocalRun(jobs, Local(per_gpu=2))
    run.poll()
    assert sorted(run.gpus.values()) == ["4", "4", "7", "7"]
    assert list(run.running) == [*jobs[:4], jobs[5]] and list(run.waiting) == [jobs[4]]
    run.kill()
    until(lambda: run.poll() is not None and not run.active)
