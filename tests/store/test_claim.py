"""One writer per session: by pid, start time and boot on one machine, by heartbeats between machines.

Other hosts are processes in namespaces of their own: another host name, other pids, and a lock file of their own, as on
a filesystem whose locks are local to a host. They share the directory of the session.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from rldsl.store import claim
from rldsl.store.claim import Patience
from rldsl.store.errors import AlreadyRunning, ClaimLost
from rldsl.store.processes import ProcessId, machine_id
from rldsl.store.session_dir import GONE, SessionDir
from tests.project import until
from tests.store.hosts import Host, Hosts, other_hosts

QUICK = """
import sys, time
from pathlib import Path
from rldsl.store import claim
claim.HEARTBEAT, claim.SILENCE, claim.WATCH, claim.POLL = 0.05, 0.5, 0.3, 0.02
from rldsl.store.claim import Patience
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir
session = SessionDir(Path(sys.argv[1]))
"""
HOLD = (
    QUICK
    + """
with session.claim() as held:
    print("held", flush=True)
    while True:
        time.sleep(0.01)
        try:
            held.verify()
            session.journal.append("written", by=sys.argv[2])
        except StoreError as error:
            print(error, flush=True)
            break
"""
)
TRY = (
    QUICK
    + """
try:
    with session.claim(Patience(float(sys.argv[3]), lambda words: print(words, flush=True))):
        session.journal.append("written", by=sys.argv[2])
        print("held", flush=True)
        time.sleep(float(sys.argv[4]))
except StoreError as error:
    print(error, flush=True)
"""
)


@pytest.fixture
def session(tmp_path: Path) -> SessionDir:
    return SessionDir.create(tmp_path, "env/agent-0/seed-0", {"schema": 2}, "")


@pytest.fixture
def host(session: SessionDir) -> Iterator[Callable[..., Host]]:
    hosts = Hosts()
    yield partial(hosts.start, session)
    hosts.close()


def writers(session: SessionDir) -> list[str]:
    lines = (session.path / "journal.jsonl").read_text().splitlines()
    return [event["by"] for event in map(json.loads, lines) if event["event"] == "written"]


@other_hosts
def test_a_session_of_another_host_is_not_taken_although_the_lock_is_free(session, host) -> None:
    one = host("node1", HOLD)
    assert one.line() == "held"
    two = host("node2", TRY, 0, 0)
    assert "is already running on node1 as process" in two.line()
    assert set(writers(session)) == {"node1"}


@other_hosts
def test_a_suspended_process_that_lost_its_session_stops_before_it_writes(session, host) -> None:
    one = host("node1", HOLD)
    assert one.line() == "held"
    one.signal(signal.SIGSTOP)
    time.sleep(0.1)
    before = len(writers(session))
    two = host("node2", TRY, 5, 1)
    assert "waiting for process" in two.line()
    assert two.line() == "held"
    one.signal(signal.SIGCONT)
    assert "was taken over by process" in one.line()
    two.process.wait()
    assert writers(session)[before:] == ["node2"]


@other_hosts
def test_a_process_that_wakes_up_after_the_session_was_finished_elsewhere_writes_nothing(session, host) -> None:
    one = host("node1", HOLD)
    assert one.line() == "held"
    one.signal(signal.SIGSTOP)
    time.sleep(0.1)
    before = len(writers(session))
    two = host("node2", TRY, 5, 0)
    two.process.wait()
    assert not session.alive.exists()
    one.signal(signal.SIGCONT)
    assert "was released" in one.line()
    assert writers(session)[before:] == ["node2"]


@other_hosts
def test_a_job_waits_for_the_process_of_its_last_life(session, host) -> None:
    one = host("node1", TRY, 0, 6)
    assert one.line() == "held"
    two = host("node2", TRY, 20, 0)
    assert two.line() == "waiting for process 1 on node1 to end, at most 20 s"
    assert two.line() == "held"


@other_hosts
def test_of_two_hosts_that_start_at_once_one_is_left(session, host) -> None:
    hosts = [host(f"node{number}", HOLD) for number in range(3)]
    until(lambda: sum(one.process.poll() is None for one in hosts) == 1)
    time.sleep(0.3)
    last = writers(session)[-5:]
    assert len(set(last)) == 1


def test_a_reused_pid_is_not_signalled(session) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = ProcessId.of(child.pid)
        assert process is not None and process.alive
        for other in (
            process._replace(start_time=process.start_time - 1),
            process._replace(machine="another boot"),
            process._replace(host="elsewhere"),
        ):
            assert not other.alive
            assert other.send_signal(signal.SIGKILL) is False
        assert child.poll() is None
        assert process.send_signal(signal.SIGKILL) is True
        child.wait()
        assert process.send_signal(signal.SIGKILL) is False


def test_after_a_reboot_the_heartbeat_decides(session) -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None and me.machine == machine_id()
    session.journal.append("started", frame=0)
    session.alive.write_text(json.dumps({**me.data(), "machine": "another boot"}))
    assert session.state() == "running", "it may be another machine with the same name"
    os.utime(session.alive, (time.time() - 90,) * 2)
    assert session.read_state().reason == GONE


@pytest.mark.parametrize(
    "beat", [None, [], {}, {"host": 1}, {"host": "a", "pid": True, "start_time": 1}, {"host": "a", "pid": -1}]
)
def test_nonsense_is_not_a_process(beat: object) -> None:
    assert ProcessId.parse(beat) is None


@pytest.mark.parametrize("jump", [-7200.0, -90.0, 90.0, 7200.0])
def test_a_clock_that_jumps_does_not_make_another_host_dead_or_alive(session, monkeypatch, jump) -> None:
    session.journal.append("started", frame=0)
    session.alive.write_text(json.dumps({"host": "elsewhere", "pid": 1, "start_time": 1.0, "time": 0}))
    assert session.state() == "running"
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + jump)
    assert session.state() == "running"
    os.utime(session.alive, (now() - 90,) * 2)
    assert session.state() == "resume"


def test_a_host_whose_clock_is_ahead_or_behind_is_watched(session, monkeypatch) -> None:
    monkeypatch.setattr(claim, "WATCH", 0.3)
    monkeypatch.setattr(claim, "POLL", 0.02)
    beat = {"host": "elsewhere", "pid": 1, "start_time": 1.0, "time": 0}
    for offset in (-600.0, 600.0):
        session.alive.write_text(json.dumps(beat))
        os.utime(session.alive, (time.time() + offset,) * 2)
        with session.claim():
            pass  # there was no heartbeat while it was watched

        def renew(sentence: str, offset: float = offset) -> None:
            session.alive.write_text(json.dumps(beat))
            os.utime(session.alive, (time.time() + offset + 10,) * 2)

        session.alive.write_text(json.dumps(beat))
        os.utime(session.alive, (time.time() + offset,) * 2)
        with pytest.raises(AlreadyRunning, match="on elsewhere"), session.claim(Patience(0.0, renew)):
            pass
        session.alive.unlink()


def test_who_is_asked_to_stop_stops_waiting(session) -> None:
    with session.claim(), pytest.raises(AlreadyRunning), session.claim(Patience(60.0, stop=lambda: True)):
        pass


def test_a_claim_is_checked_before_a_write(session) -> None:
    with session.claim() as held:
        held.verify()
        held.beat()
        held.verify()
        other = claim.Claim(session.alive)
        other.beat()
        with pytest.raises(ClaimLost, match=f"taken over by process {os.getpid()}"):
            held.verify()
    assert session.alive.exists(), "it is the other's"


def test_checking_a_claim_is_cheap(session) -> None:
    with session.claim() as held:
        begin = time.process_time()
        for _ in range(1000):
            held.verify()
        assert time.process_time() - begin < 0.1
