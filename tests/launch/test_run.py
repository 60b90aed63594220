"""`run_plan` without a command line: what it runs, what it leaves alone, and what it reports to its observer."""

from __future__ import annotations

import socket
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from rldsl import Classic, Local, Random, Slurm, experiment
from rldsl.launch.backend import Refused
from rldsl.launch.job_records import JobRecord
from rldsl.launch.observer import Ending, FollowedSession
from rldsl.launch.run import RunRequest, RunResult, run_plan
from rldsl.launch.select import RESUME, TRAIN
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Plan, make_plan
from rldsl.spec.gin_text import session_gin
from rldsl.spec.launcher import Launcher
from rldsl.store.session_dir import SessionDir


class Recorder:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.endings: list[Ending] = []
        self.skips: list[tuple[int, int]] = []
        self.seen: set[str] = set()
        self.notes: list[str] = []

    def skipped(self, running: int, failed: int) -> None:
        self.skips.append((running, failed))

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def already_queued(self, sessions: int) -> None: ...

    def stale_jobs(self, records: Sequence[JobRecord], cancelled: bool, refusals: Sequence[str]) -> None: ...

    def submitted(self, sessions: int, records: Sequence[JobRecord], backend: str) -> None: ...

    def refused(self, accepted: int, reason: str) -> None: ...

    def progress(self, running: Collection[FollowedSession]) -> None:
        self.seen |= {session.planned.id for session in running}

    def ended(self, ending: Ending) -> None:
        self.endings.append(ending)

    def stopping(self) -> None: ...


def plan(launcher: Launcher) -> Plan:
    base = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(400).log_every(100).seeds(2)
    return make_plan([Overridden(base.on(launcher).build())])


def request(root: Path, made: Plan, **options: object) -> RunRequest:
    (root / "exp.py").write_text("")
    return RunRequest(made, root / "runs", root / "exp.py", ["python", "exp.py"], **options)


def create(root: Path, made: Plan, *events: str) -> None:
    """Sessions of a plan with these events in their journals."""
    for session in (session for row in made.rows() for session in row.sessions()):
        directory = SessionDir.create(root / "runs", session.directory, session.record(), session_gin(session))
        for event in events:
            directory.journal.append(event, frame=100)


def test_the_foreground_reports_every_session(tmp_path: Path) -> None:
    made, observer = plan(Local(parallel=1)), Recorder()
    assert run_plan(request(tmp_path, made), observer) == RunResult("finished", started=2)
    ids = {session.id for row in made.rows() for session in row.sessions()}
    assert {ending.session.planned.id for ending in observer.endings} == observer.seen == ids
    assert {(ending.state, ending.reason) for ending in observer.endings} == {("done", None)}
    assert all(ending.session.row["frame"] == 400 for ending in observer.endings)
    assert run_plan(request(tmp_path, made), observer) == RunResult("finished"), "all are done"


@pytest.mark.parametrize(
    ("launcher", "detach", "outcome"),
    [(Local(), False, "finished"), (Local(), True, "detached"), (Slurm(), False, "finished")],
    ids=["foreground", "detached", "slurm"],
)
def test_train_leaves_failed_sessions_alone_on_every_launcher(
    tmp_path: Path, launcher: Launcher, detach: bool, outcome: str
) -> None:
    made, observer = plan(launcher), Recorder()
    create(tmp_path, made, "started", "failed")
    assert run_plan(request(tmp_path, made, states=TRAIN, detach=detach), observer) == RunResult(outcome)
    assert observer.skips == [(0, 2)] and not observer.endings


def test_resume_retries_failed_sessions_in_the_foreground(tmp_path: Path) -> None:
    made, observer = plan(Local(parallel=1)), Recorder()
    create(tmp_path, made, "started", "failed")
    assert run_plan(request(tmp_path, made, states=RESUME), observer) == RunResult("finished", started=2)
    assert [ending.state for ending in observer.endings] == ["done", "done"]


def test_resume_submits_failed_sessions_to_a_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    made = plan(Slurm())
    create(tmp_path, made, "started", "failed")
    with pytest.raises(Refused, match="there is no scontrol on this machine"):
        run_plan(request(tmp_path, made, states=RESUME), Recorder())


def test_resume_starts_nothing_new(tmp_path: Path) -> None:
    made, observer = plan(Local()), Recorder()
    assert run_plan(request(tmp_path, made, states=RESUME), observer) == RunResult("finished")
    assert not (tmp_path / "runs").exists()


def test_sessions_that_run_outside_of_the_queue_are_left_alone_and_told(tmp_path: Path) -> None:
    made, observer = plan(Local()), Recorder()
    create(tmp_path, made, "started")
    sessions = [SessionDir(tmp_path / "runs" / row.directory(seed)) for row in made.rows() for seed in row.seeds]
    with sessions[0].claim(), sessions[1].claim():
        assert run_plan(request(tmp_path, made, detach=True), observer) == RunResult("detached")
    assert observer.notes == [f"2 sessions running outside of the queue on {socket.gethostname()}: left alone"]
