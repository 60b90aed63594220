"""The session index agrees with `status`, and reads nothing twice."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from rldsl.monitor import session_tracker
from rldsl.monitor.session_index import Changes, SessionIndex
from rldsl.monitor.session_tracker import SessionTracker
from rldsl.monitor.snapshot import SessionSnapshot
from rldsl.report.status import run_states
from rldsl.store.metrics import MetricsWriter
from tests.monitor.conftest import SampleRuns
from tests.monitor.sample_sessions import COLUMNS, append_events, cartpole, make_done, row, running, sessions_of


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FollowedIndex:
    """An index, and the sessions that it has returned so far."""

    def __init__(self, runs: Path) -> None:
        self.clock = Clock()
        self.index = SessionIndex(runs, self.clock)
        self.sessions: dict[str, SessionSnapshot] = {}

    def refresh(self) -> Changes:
        self.clock.now += 10
        changes = self.index.refresh()
        self.sessions.update({session.path: session for session in changes.updated})
        for path in changes.removed:
            self.sessions.pop(path)
        return changes


def test_the_index_agrees_with_status(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    assert {one.status.session: one.status for one in followed.sessions.values()} == {
        one.session: one for one in run_states(sample.runs)
    }


def test_a_refresh_without_changes_opens_no_file(sample: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh(), followed.refresh()
    opened: list[str] = []
    open_file = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: (opened.append(str(path)), open_file(path, *rest, **more))[1]
    )
    monkeypatch.setattr(session_tracker, "last_row", lambda path: opened.append(str(path)))
    assert not followed.refresh()
    assert not [path for path in opened if "metrics" in path or "journal" in path]


def test_a_new_log_point_is_read(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    MetricsWriter(sample.alive.metrics, COLUMNS).write(row(50_000, 321.0))
    (snapshot,) = followed.refresh().updated
    assert (snapshot.status.session, snapshot.status.frame, snapshot.status.episode_return) == (
        sample.alive.id,
        50_000,
        321.0,
    )
    assert snapshot.left == 50.0
    assert snapshot.backend == "local"


def test_state_changes_of_a_session(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    path = sample.path(sample.new)
    assert followed.sessions[path].status.state == "new"
    with sample.new.claim():
        append_events(sample.new, ("started", {"frame": 0, "host": "vm"}))
        followed.refresh()
        assert followed.sessions[path].status.state == "running"
    append_events(sample.new, ("done", {"frame": 100_000}))
    followed.refresh()
    assert followed.sessions[path].status.state == "done"


def test_sessions_are_added_and_removed(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    added = make_done(sample.runs, sessions_of(cartpole("late").frames(5e4))[0])
    assert [one.status.session for one in followed.refresh().updated] == [added.id]
    shutil.rmtree(added.path.parent)
    assert followed.refresh().removed == [sample.path(added)]
    shutil.rmtree(sample.runs)
    followed.refresh()
    assert not followed.sessions


def test_two_changes_with_the_same_modification_time(sample: SampleRuns) -> None:
    """As on a filesystem with a coarse clock."""
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    first, second = sessions_of(cartpole("late").frames(5e4))
    directory = make_done(sample.runs, first)
    trial = directory.path.parent
    followed.refresh()
    changed = trial.stat()
    make_done(sample.runs, second)
    os.utime(trial, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    assert len(followed.refresh().updated) == 1


def test_an_incomplete_line_is_ignored_until_it_is_complete(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    whole = sample.alive.metrics.read_text()
    sample.alive.metrics.write_text(whole + "60000,60.0,1000.0,600,4")
    followed.refresh()
    assert followed.sessions[sample.path(sample.alive)].status.frame == 20_000
    sample.alive.metrics.write_text(whole + "60000,60.0,1000.0,600,400.0,400.0,400.0,0.1,0.2\n")
    followed.refresh()
    assert followed.sessions[sample.path(sample.alive)].status.frame == 60_000


def test_unreadable_lines_are_counted_and_skipped(sample: SampleRuns) -> None:
    with sample.failed.journal.path.open("ab") as journal:
        journal.write(b"\xff\xfe garbage\n[1, 2]\n")
    sample.done[0].session.write_text("not json")
    sample.done[1].metrics.write_bytes(b"\x00\x01\n\xff\xff\n")
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    assert followed.sessions[sample.path(sample.failed)].status.unreadable == 2
    assert followed.sessions[sample.path(sample.done[0])].status.experiment == "?"
    assert len(followed.sessions) == len(list(run_states(sample.runs)))


def test_a_directory_counts_once_it_has_a_session_file(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    half = sample.done[0].path.with_name("seed-77")
    half.mkdir()
    assert not followed.refresh()
    record = sample.done[0].read_session()
    (half / "session.json").write_text(json.dumps({**record, "seed": 77}))
    assert [one.status.seed for one in followed.refresh().updated] == [77]


@pytest.mark.parametrize("key", ["backend", "place", "launcher"])
def test_the_backend_of_a_submitted_session(sample: SampleRuns, key: str) -> None:
    append_events(sample.new, ("submitted", {key: "slurm", "job_id": 4711}))
    followed = FollowedIndex(sample.runs)
    followed.refresh()
    snapshot = followed.sessions[sample.path(sample.new)]
    assert (snapshot.backend, snapshot.job) == ("slurm 4711", "4711")


def test_a_refresh_reads_new_sessions_for_a_limited_time(sample: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known sessions are shown soon, however many have not been read yet."""
    followed = FollowedIndex(sample.runs)

    def slow_refresh(tracker: SessionTracker) -> None:
        followed.clock.now += 0.1

    monkeypatch.setattr(SessionTracker, "refresh", slow_refresh)
    followed.index.refresh()
    assert 1 <= len(followed.index.trackers) <= 3
    assert len(followed.index.unread) + len(followed.index.trackers) == followed.index.total


def test_a_slow_filesystem_is_scanned_less_often(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    followed.refresh(), followed.refresh()
    scan, scans = followed.index.scanner.scan, []

    def slow() -> object:
        scans.append(followed.clock.now)
        followed.clock.now += 1.0
        return scan()

    followed.index.scanner.scan = slow  # type: ignore[method-assign]
    followed.refresh()
    for _ in range(40):
        followed.clock.now += 1.0
        followed.index.refresh()
    assert len(scans) == 1, "a scan that took one second is not repeated within 40 seconds"


def test_speed_and_time_left_are_those_of_now(sample: SampleRuns) -> None:
    """Not those of an earlier attempt, nor of a process that compiles or has ended."""
    followed, alive = FollowedIndex(sample.runs), sample.path(sample.alive)

    def figures() -> tuple[str, float | None, float | None]:
        followed.refresh()
        session = followed.sessions[alive]
        return session.state, session.fps, session.left

    assert figures() == ("running", 1000.0, 80.0)
    append_events(sample.alive, ("compiling", {}))
    assert figures() == ("compiling", None, None)
    append_events(sample.alive, ("compiled", {}))
    assert figures() == ("running", 1000.0, 80.0)
    long_ago = time.time() - 60
    os.utime(sample.alive.metrics, (long_ago, long_ago))
    append_events(sample.alive, ("started", {"frame": 20_000}))
    assert figures() == ("running", None, None)
    MetricsWriter(sample.alive.metrics, COLUMNS).write(row(50_000, 100.0))
    assert figures() == ("running", 1000.0, 50.0)
    sample.process.kill()
    assert figures() == ("killed", None, None)


def test_a_killed_session_is_no_longer_running(sample: SampleRuns) -> None:
    followed = FollowedIndex(sample.runs)
    session = sessions_of(cartpole("killed").frames(5e4))[0]
    with running(sample.runs, session) as directory:
        followed.refresh()
        assert followed.sessions[sample.path(directory)].status.state == "running"
    followed.refresh()
    assert followed.sessions[sample.path(directory)].status.state == "resume"
