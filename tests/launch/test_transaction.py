"""Submissions that were interrupted: what the next command makes of them. This machine is the queue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rldsl.launch.backend import QueueUnavailable, Refused
from rldsl.launch.intents import Intent, is_wanted, late_intents, open_intents
from rldsl.launch.job_records import new_submission, newest_records, read_records, record_of, record_stop
from rldsl.launch.jobs import Job
from rldsl.launch.lives import end_without_progress, lives_without_progress
from rldsl.launch.local_backend import LocalBackend
from rldsl.launch.submission_lock import submission_lock
from rldsl.launch.transaction import settle_submissions, submit_jobs, try_to_settle
from rldsl.spec.launcher import Local
from rldsl.store.errors import AlreadyRunning
from rldsl.store.session_dir import SessionDir
from tests.project import until

LAUNCHER = Local(parallel=2)


def jobs(runs: Path, number: int = 3) -> list[Job]:
    paths = [runs / "env" / "agent-0123456789ab" / f"seed-{n}" for n in range(number)]
    return [
        Job((f"0123456789ab-s{n}",), path, (sys.executable, "-c", "pass"), directories=(path,), cwd=runs.parent)
        for n, path in enumerate(paths)
    ]


def interrupted(runs: Path) -> Intent:
    """A submission whose submitter was killed before it asked the queue."""
    folder = new_submission(runs)
    intent = Intent(folder, tuple(record_of(job, "", folder.name, LAUNCHER, runs) for job in jobs(runs)))
    intent.write()
    return intent


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def test_a_submission_leaves_records_and_no_intent(runs: Path) -> None:
    records = submit_jobs(runs, LAUNCHER, jobs(runs), runs)
    assert [one.job_id for one in records] == [f"{records[0].submission}/{n}" for n in range(3)]
    assert read_records(runs) == records and not open_intents(runs)


def test_jobs_that_never_reached_the_queue_are_given_up(runs: Path) -> None:
    intent = interrupted(runs)
    assert open_intents(runs) == [intent] and is_wanted(intent.folder, 0)
    assert settle_submissions(runs) == [], "nothing to tell: the same command submits them"
    assert not open_intents(runs) and not read_records(runs)
    assert not is_wanted(intent.folder, 0), "one that arrives later does not train"
    assert [one.name for one in late_intents(runs)] == [intent.name]


def test_jobs_that_reached_the_queue_are_recorded_once(runs: Path) -> None:
    intent = interrupted(runs)
    LocalBackend(LAUNCHER, runs).submit(jobs(runs), runs, intent.folder)
    (note,) = try_to_settle(runs)
    assert note.startswith(f"found 3 jobs ({intent.name}/0, ") and "recorded them" in note
    assert [one.sessions for one in read_records(runs)] == [one.sessions for one in jobs(runs)]
    intent.write()  # as if the submitter had been killed between the records and the end of its intent
    settle_submissions(runs)
    assert len(read_records(runs)) == 3 and try_to_settle(runs) == []


def test_a_supervisor_that_starts_too_late_runs_nothing(runs: Path) -> None:
    intent = interrupted(runs)
    settle_submissions(runs)
    LocalBackend(LAUNCHER, runs).submit(jobs(runs), runs, intent.folder)
    until(lambda: "failed" in {one.state for one in LocalBackend(LAUNCHER, runs).states([f"{intent.name}/0"]).values()})
    assert not (runs / "env").exists()


class Unanswered(LocalBackend):
    """A queue whose answer is lost, or that does not even say afterwards what it has."""

    silent = False

    def submit(self, jobs: list[Job], code: Path, folder: Path) -> list[str]:  # type: ignore[override]
        super().submit(jobs, code, folder)
        raise QueueUnavailable("the connection was lost")

    def find(self, intent: Intent) -> dict[int, str]:
        if self.silent:
            raise QueueUnavailable("no route to host")
        return dict(list(super().find(intent).items())[:2])


def test_after_a_lost_answer_the_queue_is_asked(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Local, "implementation", f"{__name__}:Unanswered")
    with pytest.raises(Refused, match="the connection was lost") as error:
        submit_jobs(runs, LAUNCHER, jobs(runs), runs)
    assert len(error.value.ids) == 2 and len(read_records(runs)) == 2 and not open_intents(runs)


def test_a_queue_that_stays_silent_is_asked_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Local, "implementation", f"{__name__}:Unanswered")
    monkeypatch.setattr(Unanswered, "silent", True)
    with pytest.raises(QueueUnavailable, match="not known, the next command asks again"):
        submit_jobs(runs, LAUNCHER, jobs(runs), runs)
    assert open_intents(runs) and not read_records(runs)
    assert "which of its jobs are in the queue is not known: no route to host" in try_to_settle(runs)[0]
    monkeypatch.setattr(Unanswered, "silent", False)
    assert "found 2 jobs" in try_to_settle(runs)[0] and "the other 1 were never submitted" not in try_to_settle(runs)


def test_one_submitter_at_a_time_and_the_same_process_may_enter_again(runs: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from rldsl.launch.submission_lock import submission_lock\n"
        "with submission_lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, runs], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(AlreadyRunning, match=f"process {other.pid} on .* is submitting jobs from"):
            submission_lock(runs, wait=False).__enter__()
        told: list[str] = []
        threading.Timer(0.5, other.kill).start()
        with submission_lock(runs, told.append), submission_lock(runs):
            assert len(told) == 1, "waited for the other, which was killed"


def test_a_signal_during_a_submission_is_handled_after_it(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = LocalBackend.submit

    def submit(*arguments: object) -> list[str]:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalBackend, "submit", submit)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest-xdist ignores the signal
    try:
        with pytest.raises(KeyboardInterrupt):
            submit_jobs(runs, LAUNCHER, jobs(runs), runs)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(read_records(runs)) == 3 and not open_intents(runs)


def test_a_stop_is_recorded(runs: Path) -> None:
    first, *_ = submit_jobs(runs, LAUNCHER, jobs(runs), runs)
    record_stop(runs, [first])
    assert newest_records(read_records(runs))[first.sessions[0]] == replace(first, stopped=True)
    assert [one.stopped for one in read_records(runs)] == [True, False, False]


def test_lives_without_progress_are_counted_since_the_last_new_checkpoint() -> None:
    def lives(*names: str) -> int:
        events = [{"event": one.rstrip("0123456789"), "job_id": "7"} for one in names]
        frames = [{"frame": int(one[len("checkpoint") :])} if one.startswith("checkpoint") else {} for one in names]
        return lives_without_progress([{**event, **frame} for event, frame in zip(events, frames, strict=True)], "7")

    assert lives("launched", "started", "launched", "started") == 2
    assert lives("launched", "checkpoint100", "launched", "launched") == 2
    assert lives("launched", "checkpoint100", "launched", "checkpoint100", "launched") == 2, "the same one again"
    assert lives("launched", "checkpoint100", "launched", "checkpoint200") == 0
    assert lives("launched", "launched", "failed", "launched") == 1, "`resume` gives it three more"
    assert lives_without_progress([{"event": "launched", "job_id": "8"}], "7") == 0


def test_a_job_without_progress_fails_its_sessions(runs: Path) -> None:
    directory = SessionDir.create(runs, "env/agent-0123456789ab/seed-0", {"frames": 10}, "")
    for _ in range(2):
        directory.journal.append("launched", job_id="7_0")
    assert end_without_progress([directory.path], "7_0") is None
    directory.journal.append("launched", job_id="7_0")
    reason = end_without_progress([directory.path], "7_0")
    assert reason is not None and reason.startswith(
        "no progress in 3 lives of job 7_0: its last checkpoint is of frame 0"
    )
    assert (directory.read_state().state, directory.read_state().reason) == ("failed", reason)
