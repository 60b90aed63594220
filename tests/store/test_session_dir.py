from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from rldsl.spec.session import session_directory
from rldsl.store import AlreadyRunning, CannotWrite, SessionDir, StoreError, claim
from rldsl.store.processes import host_name, start_time

PLACE = session_directory("hopper", "ppo", "abc123", 0)

HOLD = """
    import sys
    from pathlib import Path
    from rldsl.store import SessionDir
    session = SessionDir(Path(sys.argv[1]))
    with session.claim():
        session.journal.append("started", frame=0)
        print("held")
        sys.stdin.read()
"""


@pytest.fixture
def session(tmp_path) -> SessionDir:
    return SessionDir.create(tmp_path / "runs", PLACE, {"schema": 1, "id": "abc123-s0"}, "PPO.gamma = 0.9\n")


def test_create(session, tmp_path):
    assert session.path == tmp_path / "runs/hopper/ppo-abc123/seed-0"
    assert session.read_session() == {"schema": 1, "id": "abc123-s0"}
    assert session.config.read_text() == "PPO.gamma = 0.9\n"
    assert (session.id, session.trial, session.seed) == ("abc123-s0", "abc123", 0)
    assert session.read_state().state == "new"
    assert sorted(path.name for path in session.path.iterdir()) == ["config.gin", "journal.jsonl", "session.json"]


def test_create_leaves_a_complete_session_alone(session, tmp_path):
    session.journal.append("done", frame=9)
    again = SessionDir.create(tmp_path / "runs", PLACE, {"other": 1}, "other")
    assert again == session
    assert again.read_session()["id"] == "abc123-s0"
    assert again.state() == "done"


def test_a_killed_creation_is_absent_and_then_completed(tmp_path):
    half = SessionDir(tmp_path / PLACE)
    half.path.mkdir(parents=True)
    half.config.write_text("old")
    assert not half.exists()
    assert half.state() == "new"
    assert SessionDir.create(tmp_path, PLACE, {"id": "x"}, "new").config.read_text() == "new"


def test_a_file_in_the_way_of_the_runs_directory(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(CannotWrite, match=f"cannot create a session in the runs directory {tmp_path}/runs: "):
        SessionDir.create(tmp_path / "runs", PLACE, {}, "")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_an_unwritable_runs_directory():
    with pytest.raises(CannotWrite, match="cannot create a session in the runs directory /proc/runs"):
        SessionDir.create(Path("/proc/runs"), PLACE, {}, "")


def test_a_full_disk_leaves_nothing_behind(tmp_path, file_size_limit):
    file_size_limit(1000)
    with pytest.raises(CannotWrite, match="the disk is full"):
        SessionDir.create(tmp_path / "runs", PLACE, {"spec": "x" * 5000}, "short")
    assert list(tmp_path.iterdir()) == []


def test_an_unreadable_session_is_a_sentence(session):
    session.session.write_text("{")
    with pytest.raises(StoreError, match=r"session\.json cannot be read"):
        session.read_session()


def test_states(session):
    journal = session.journal
    assert session.state() == "new"
    journal.append("started", frame=0)
    assert session.state() == "resume"  # nobody holds it: its process was killed
    journal.append("stopped", frame=10, reason="time limit")
    assert (session.state(), session.read_state().frame) == ("resume", 10)
    journal.append("failed", frame=12, reason="nan in loss")
    with journal.path.open("a") as file:
        file.write("rubbish\n")
    state = session.read_state()
    assert (state.state, state.frame, state.reason, state.attempts, state.unreadable) == (
        "failed",
        12,
        "nan in loss",
        1,
        1,
    )
    journal.append("started", frame=10)
    journal.append("done", frame=20)
    assert session.state() == "done"


def test_claim_is_exclusive_and_cleans_up(session):
    with session.claim():
        assert session.state() == "running"
        assert json.loads(session.alive.read_text())["pid"] == os.getpid()
        with (
            pytest.raises(AlreadyRunning, match=f"already running on {host_name()} as process {os.getpid()}"),
            session.claim(),
        ):
            pass
        assert session.alive.exists()
    assert not session.alive.exists()
    with session.claim():
        pass


def test_claim_between_processes_ends_with_the_holder(session, child):
    holder = child(HOLD, session.path)
    assert holder.line() == "held"
    assert session.state() == "running"
    with pytest.raises(AlreadyRunning, match=f"as process {holder.process.pid}"), session.claim():
        pass
    holder.kill()
    assert session.alive.exists()
    assert session.state() == "resume"
    with session.claim():
        assert session.state() == "running"


def test_a_dead_process_that_nobody_buried_is_dead(session, child):
    holder = child(HOLD, session.path)
    holder.line()
    os.kill(holder.process.pid, 9)
    deadline = time.monotonic() + 5
    while session.state() == "running" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert session.state() == "resume"


def test_a_forked_worker_does_not_hold_the_session(session):
    context = multiprocessing.get_context("fork")
    release = context.Event()
    with session.claim():
        worker = context.Process(target=release.wait, args=(20,))
        worker.start()
    with session.claim():
        release.set()
    worker.join()
    assert worker.exitcode == 0


def test_a_pid_that_came_back_is_another_process(session):
    started = start_time(os.getpid())
    beat = {"host": host_name(), "pid": os.getpid(), "start_time": started, "time": 0}
    session.journal.append("started", frame=0)
    session.alive.write_text(json.dumps(beat))
    assert session.state() == "running"
    session.alive.write_text(json.dumps({**beat, "start_time": started - 1}))
    assert session.state() == "resume"


@pytest.mark.parametrize(("age", "state"), [(30, "running"), (90, "resume")])
def test_another_host_is_judged_by_its_heartbeat(session, age, state):
    session.journal.append("started", frame=0)
    session.alive.write_text(json.dumps({"host": "elsewhere", "pid": 1, "start_time": 1.0, "time": 0}))
    os.utime(session.alive, (time.time() - age, time.time() - age))
    assert session.state() == state
    assert not list(session.path.glob(".*"))


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", '{"host": null, "pid": "x"}'])
def test_a_broken_heartbeat_does_not_break_the_state(session, text):
    session.journal.append("started", frame=0)
    session.alive.write_text(text)
    assert session.state() in ("resume", "running")


def test_the_heart_beats(session, monkeypatch):
    monkeypatch.setattr(claim, "HEARTBEAT", 0.01)
    with session.claim():
        first = session.alive.stat().st_ino, session.alive.stat().st_mtime_ns
        deadline = time.monotonic() + 5
        while (session.alive.stat().st_ino, session.alive.stat().st_mtime_ns) == first:
            assert time.monotonic() < deadline
    assert not session.alive.exists()


def test_reading_a_state_is_cheap(session):
    for event in ("started", "checkpoint", "stopped"):
        session.journal.append(event, frame=5)
    begin = time.process_time()
    for _ in range(500):
        session.read_state()
    assert (time.process_time() - begin) / 500 < 500e-6  # a bound for a busy machine


def test_temporary_files_of_dead_writers_are_removed(session):
    dead, alive = session.path / ".config.gin.4194303-0123abcd.tmp", session.path / f".a.{os.getpid()}-0123abcd.tmp"
    for path in (dead, alive, session.path / ".mine.tmp"):
        path.touch()
    session.remove_leftovers()
    assert sorted(path.name for path in session.path.glob(".*")) == sorted([alive.name, ".mine.tmp"])
