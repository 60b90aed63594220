"""What can be removed from a run directory, and what must stay."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from rldsl.launch.intents import Intent
from rldsl.launch.job_records import new_submission, record_of
from rldsl.launch.jobs import Job
from rldsl.launch.local_backend import LocalBackend
from rldsl.launch.prune import find_removable, remove
from rldsl.launch.transaction import submit_jobs
from rldsl.spec.launcher import Local
from rldsl.store.session_dir import SessionDir
from tests.project import Project, until


def job(runs: Path, seed: int, code: Path, command: str) -> Job:
    directory = SessionDir.create(runs, f"env/agent-0123456789ab/seed-{seed}", {"frames": 10}, "")
    words = (sys.executable, "-c", command)
    return Job((directory.id,), directory.path, words, directories=(directory.path,), cwd=code)


def copy(runs: Path, name: str) -> Path:
    made = runs / ".code" / name
    made.mkdir(parents=True)
    (made / "x.py").write_text("pass")
    return made


def grow_old(runs: Path) -> None:
    for path in (*(runs / ".jobs").iterdir(), *(runs / ".code").iterdir()):
        os.utime(path, (time.time() - 7200, time.time() - 7200))


def names(runs: Path) -> set[str]:
    return {one.path.name for one in find_removable(runs)}


def test_what_live_jobs_need_and_the_last_words_of_others_stay(tmp_path: Path) -> None:
    runs, launcher = tmp_path / "runs", Local(parallel=1)
    used, unused, half = copy(runs, "used"), copy(runs, "unused"), copy(runs, ".half.1.tmp")
    done = job(runs, 0, unused, "pass")
    (ended,) = submit_jobs(runs, launcher, [done], unused)
    (failed,) = submit_jobs(runs, launcher, [job(runs, 1, unused, "raise SystemExit(1)")], unused)
    (live,) = submit_jobs(runs, launcher, [job(runs, 2, used, "import time; time.sleep(60)")], used)
    backend = LocalBackend(launcher, runs)
    until(lambda: not any(one.live for one in backend.states([ended.job_id, failed.job_id]).values()))
    SessionDir(done.directory).journal.append("done", frame=10)
    folder = new_submission(runs)
    Intent(folder, (record_of(done, "", folder.name, launcher, runs),)).write()
    assert names(runs) == set(), "what was made in the last hour stays"
    grow_old(runs)
    assert names(runs) == {ended.submission, unused.name, half.name}
    remove(runs, find_removable(runs))
    assert names(runs) == set() and used.is_dir() and failed.folder(runs).is_dir() and folder.is_dir()
    backend.cancel([live.job_id])
    until(lambda: not backend.states([live.job_id])[live.job_id].live)
    assert names(runs) == {used.name}


def test_the_command_lists_and_removes_only_if_it_is_told_to(project: Project) -> None:
    made = copy(project.runs, "abc")
    os.utime(made, (0, 0))
    said = project.rldsl("prune").stdout
    assert ".code/abc" in said and "1 folder, 0.0 MB: `rldsl prune --yes` removes them" in said and made.is_dir()
    assert "removed 1 folder" in project.rldsl("prune", "--yes").stdout and not made.exists()
    assert "there is nothing to remove from runs" in project.rldsl("prune").stdout


def test_a_queue_that_does_not_answer_keeps_everything(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from rldsl.launch.job_records import JobRecord, write_records
    from rldsl.spec.launcher import Slurm

    monkeypatch.setenv("PATH", str(project.root))
    made = copy(project.runs, "abc")
    os.utime(made, (0, 0))
    write_records(project.runs, [JobRecord("slurm", "1", ("a-s0",), "s", Slurm().data())])
    done = project.rldsl("prune", "--yes")
    assert done.returncode == 2 and "the jobs in the queue are not known" in done.stderr and made.is_dir()
