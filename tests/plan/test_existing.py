"""What a run directory holds already: states, frames left, time left."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl import Classic, Random, experiment
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import Row, make_plan
from rldsl.spec.gin_text import session_gin
from rldsl.store.session_dir import SessionDir


def row(frames: float = 1000, seeds: int = 1, num_envs: int = 1) -> Row:
    env = Classic("CartPole-v1", num_envs=num_envs)
    made = experiment("x").env(env).agent(Random()).frames(frames).seeds(seeds).build()
    return next(make_plan([Overridden(made)]).rows())


def directory(runs: Path, planned: Row) -> SessionDir:
    session = next(planned.sessions())
    return SessionDir.create(runs, session.directory, session.record(), session_gin(session))


def planned(runs: Path, planned: Row) -> PlannedSession:
    return Existing(runs).planned(planned)[0]


def test_what_is_not_there_is_new(tmp_path: Path) -> None:
    one = planned(tmp_path / "runs", row())
    assert (one.state, one.frames_left) == ("new", 1000)
    assert not (tmp_path / "runs").exists()


def test_a_session_that_was_made_and_never_started_is_new(tmp_path: Path) -> None:
    directory(tmp_path, row())
    assert planned(tmp_path, row()).state == "new"


@pytest.mark.parametrize(
    ("events", "state", "left"),
    [
        (["started", "checkpoint"], "resume", 600),
        (["started", "checkpoint", "stopped"], "resume", 600),
        (["started", "checkpoint", "done"], "done", 0),
        (["started", "failed"], "failed", 600),
        (["started", "failed", "started"], "resume", 600),
    ],
)
def test_the_journal_says_how_a_session_stands(tmp_path: Path, events: list[str], state: str, left: int) -> None:
    made = directory(tmp_path, row())
    for event in events:
        made.journal.append(event, frame=400)
    one = planned(tmp_path, row())
    assert (one.state, one.frames_left) == (state, left)


def test_a_session_that_a_live_process_holds_is_running(tmp_path: Path) -> None:
    made = directory(tmp_path, row())
    with made.claim():
        made.journal.append("started", frame=0)
        assert planned(tmp_path, row()).state == "running"
    assert planned(tmp_path, row()).state == "resume"


def test_only_the_same_work_counts_as_there(tmp_path: Path) -> None:
    directory(tmp_path, row()).journal.append("done", frame=1000)
    assert planned(tmp_path, row()).state == "done"
    assert planned(tmp_path, row(frames=1001)).state == "new"
    assert [one.state for one in Existing(tmp_path).planned(row(seeds=2))] == ["done", "new"]


def finished(runs: Path, planned: Row, seconds: float) -> None:
    made = directory(runs, planned)
    made.journal.append("started", frame=0)
    made.journal.append("done", frame=planned.trial.budget.frames, seconds=seconds)


def test_an_estimate_comes_from_earlier_sessions_of_the_kind(tmp_path: Path) -> None:
    assert Existing(tmp_path).seconds_left(planned(tmp_path, row(5000))) is None
    for num_envs, seconds in ((1, 10.0), (2, 20.0), (4, 100.0)):
        finished(tmp_path, row(1000, num_envs=num_envs), seconds)
    assert Existing(tmp_path).seconds_left(planned(tmp_path, row(5000))) == pytest.approx(100)
    acrobot = experiment("x").env(Classic("Acrobot-v1")).agent(Random()).frames(5000).build()
    other = next(make_plan([Overridden(acrobot)]).rows())
    assert Existing(tmp_path).seconds_left(planned(tmp_path, other)) is None


def test_a_session_that_has_run_a_while_is_estimated_by_its_own_speed(tmp_path: Path) -> None:
    finished(tmp_path, row(1000), 10.0)
    slow = directory(tmp_path, row(5000))
    slow.journal.append("started", frame=0)
    slow.journal.append("checkpoint", frame=1000, seconds=1000.0)
    assert Existing(tmp_path).seconds_left(planned(tmp_path, row(5000))) == pytest.approx(4000)


def test_what_is_done_takes_no_more_time(tmp_path: Path) -> None:
    finished(tmp_path, row(1000), 10.0)
    assert Existing(tmp_path).seconds_left(planned(tmp_path, row(1000))) == 0
