"""Two hosts train one session on a filesystem whose locks are local to a host: one of them writes, the other stops."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rldsl.store.session_dir import SessionDir
from tests.project import events, rows, until, work
from tests.store.hosts import Hosts, other_hosts
from tests.train.attempts import Attempts
from tests.train.packs import CARTPOLE, PPO_SMALL, session, train

ONE = session(PPO_SMALL, CARTPOLE, frames=4096, log_every=64, checkpoint_every=512)
TRAIN = """
import sys, time
from rldsl.store import claim
claim.HEARTBEAT, claim.SILENCE, claim.WATCH, claim.POLL = 0.05, 0.5, 0.3, 0.02
from rldsl.train.__main__ import main
print("ready", flush=True)
sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    started = Hosts()
    yield started
    started.close()


@other_hosts
def test_a_process_that_wakes_up_late_leaves_the_session_to_the_other_host(tmp_path: Path, hosts: Hosts) -> None:
    whole = train(tmp_path / "whole", ONE).directories[0]
    attempts = Attempts(tmp_path / "env-runs", ONE)
    directory = SessionDir(attempts.paths[0])
    arguments = [attempts.plan, "--runs", attempts.runs, "--session", ONE.id]
    first = hosts.start(directory, "node1", TRAIN, *arguments)
    until(lambda: len(rows(directory.path)) >= 12)
    first.signal(signal.SIGSTOP)
    second = hosts.start(directory, "node2", TRAIN, *arguments)
    until(lambda: len([one for one in events(directory.path) if one["event"] == "started"]) == 2)
    first.signal(signal.SIGCONT)
    assert first.process.wait(60) == 1
    assert second.process.wait(60) == 0
    assert work(directory.path) == work(whole.path)
    told = [(one["event"], one.get("host")) for one in events(directory.path) if one["event"] in ("started", "done")]
    assert told == [("started", "node1"), ("started", "node2"), ("done", None)]
