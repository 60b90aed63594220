"""Jobs that train up to a frame and pause, and the commands that go on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl import Local
from rldsl.launch.backend import QueueState
from rldsl.launch.follow import follow, stop_signals
from rldsl.launch.foreground import ForegroundJobs
from rldsl.launch.job_records import JobRecord
from rldsl.launch.jobs import JobMaker
from rldsl.launch.queued import QueuedJobs
from rldsl.launch.queues import QueuedJob, with_job
from rldsl.launch.run import RunResult, freeze_plan, run_plan
from rldsl.launch.select import RESUME, TRAIN
from rldsl.plan.after import Stage
from rldsl.plan.existing import Existing
from rldsl.store.session_dir import SessionDir
from rldsl.store.session_state import State
from tests.launch.test_run import Recorder, create, plan, request


def test_jobs_in_the_foreground_pause_and_train_goes_on(tmp_path: Path) -> None:
    made, observer, runs = plan(Local(parallel=1)), Recorder(), tmp_path / "runs"
    maker = JobMaker(freeze_plan(made, runs), runs, None, ["test"])
    with stop_signals() as stop:
        stage = Stage(list(Existing(runs).sessions(made)))
        follow(ForegroundJobs([stage], maker, runs, Local(parallel=1), 200), observer, stop)
    assert {(ending.state, ending.reason) for ending in observer.endings} == {("paused", None)}
    assert all(ending.session.row["frame"] == 200 for ending in observer.endings)
    assert run_plan(request(tmp_path, made), observer) == RunResult("finished", started=2)
    assert [ending.state for ending in observer.endings[2:]] == ["done", "done"]


@pytest.mark.parametrize("states", [TRAIN, RESUME], ids=["train", "resume"])
def test_paused_sessions_are_resumed(tmp_path: Path, states: tuple[State, ...]) -> None:
    made = plan(Local(parallel=1))
    create(tmp_path, made, "started", "paused")
    assert run_plan(request(tmp_path, made, states=states), Recorder()) == RunResult("finished", started=2)


def test_queued_jobs_end_when_their_sessions_are_paused_at_the_frame_and_not_before(tmp_path: Path) -> None:
    made, runs = plan(Local()), tmp_path / "runs"
    create(tmp_path, made, "started", "paused")
    sessions = list(Existing(runs).sessions(made))
    jobs = QueuedJobs(sessions, runs, until=200)
    assert not jobs.poll() and jobs.active, "they are paused at the frame before"
    SessionDir(runs / sessions[0].directory).journal.append("paused", frame=256)
    (ending,) = jobs.poll()
    assert (ending.session.planned.id, ending.state, ending.reason) == (sessions[0].id, "paused", None)
    assert jobs.active


def test_a_paused_session_is_not_explained_by_its_job(tmp_path: Path) -> None:
    made = plan(Local())
    create(tmp_path, made, "started", "paused")
    state = next(Existing(tmp_path / "runs").sessions(made)).on_disk
    record = JobRecord("slurm", "7_0", (state.session,), "x", {})
    assert with_job(state, QueuedJob(record, QueueState("done"))) == state
    assert with_job(state, QueuedJob(record, QueueState("pending"))).state == "queued"
    assert with_job(state, QueuedJob(record, QueueState("failed", "time limit"))).reason == "slurm job 7_0: time limit"
