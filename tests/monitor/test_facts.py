"""The index: every session in the words of `status`, and nothing read twice."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from rldsl.monitor import facts
from rldsl.monitor.facts import Changes, Index, Seen
from rldsl.report.status import run_states
from rldsl.store.metrics import MetricsWriter
from tests.monitor.conftest import House
from tests.monitor.sessions import COLUMNS, cartpole, make_done, row, running, sessions_of, tell


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """An index, and all that it has said so far."""

    def __init__(self, runs: Path) -> None:
        self.clock = Clock()
        self.index = Index(runs, self.clock)
        self.seen: dict[str, Seen] = {}

    def look(self) -> Changes:
        self.clock.now += 10
        changes = self.index.look()
        self.seen.update({one.path: one for one in changes.seen})
        for path in changes.gone:
            self.seen.pop(path)
        return changes


def test_it_says_what_status_says(house: House) -> None:
    watched = Watched(house.runs)
    watched.look()
    assert {one.status.session: one.status for one in watched.seen.values()} == {
        one.session: one for one in run_states(house.runs)
    }


def test_a_second_look_finds_nothing_and_opens_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(house.runs)
    watched.look(), watched.look()
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: (opened.append(str(path)), real(path, *rest, **more))[1]
    )
    monkeypatch.setattr(facts, "last_row", lambda path: opened.append(str(path)))
    assert not watched.look()
    assert not [path for path in opened if "metrics" in path or "journal" in path]


def test_a_log_point_of_a_running_session_is_seen(house: House) -> None:
    watched = Watched(house.runs)
    watched.look()
    MetricsWriter(house.alive.metrics, COLUMNS).write(row(50_000, 321.0))
    (seen,) = watched.look().seen
    assert (seen.status.session, seen.status.frame, seen.status.episode_return) == (house.alive.id, 50_000, 321.0)
    assert seen.left == 50.0
    assert seen.place == "local"


def test_a_session_that_starts_and_ends_is_followed(house: House) -> None:
    watched = Watched(house.runs)
    watched.look()
    path = house.path(house.new)
    assert watched.seen[path].status.state == "new"
    with house.new.claim():
        tell(house.new, ("started", {"frame": 0, "host": "vm"}))
        watched.look()
        assert watched.seen[path].status.state == "running"
    tell(house.new, ("done", {"frame": 100_000}))
    watched.look()
    assert watched.seen[path].status.state == "done"


def test_sessions_come_and_go(house: House) -> None:
    watched = Watched(house.runs)
    watched.look()
    added = make_done(house.runs, sessions_of(cartpole("late").frames(5e4))[0])
    assert [one.status.session for one in watched.look().seen] == [added.id]
    shutil.rmtree(added.path.parent)
    assert watched.look().gone == [house.path(added)]
    shutil.rmtree(house.runs)
    watched.look()
    assert not watched.seen


def test_two_changes_with_one_time_are_both_seen(house: House) -> None:
    """A directory whose time does not tell of its last change, as on a coarse clock."""
    watched = Watched(house.runs)
    watched.look()
    first, second = sessions_of(cartpole("late").frames(5e4))
    directory = make_done(house.runs, first)
    trial = directory.path.parent
    watched.look()
    changed = trial.stat()
    make_done(house.runs, second)
    os.utime(trial, ns=(changed.st_atime_ns, changed.st_mtime_ns))
    assert len(watched.look().seen) == 1


def test_a_half_written_line_waits(house: House) -> None:
    watched = Watched(house.runs)
    watched.look()
    whole = house.alive.metrics.read_text()
    house.alive.metrics.write_text(whole + "60000,60.0,1000.0,600,4")
    watched.look()
    assert watched.seen[house.path(house.alive)].status.frame == 20_000
    house.alive.metrics.write_text(whole + "60000,60.0,1000.0,600,400.0,400.0,400.0,0.1,0.2\n")
    watched.look()
    assert watched.seen[house.path(house.alive)].status.frame == 60_000


def test_garbage_is_counted_and_passed_over(house: House) -> None:
    with house.failed.journal.path.open("ab") as journal:
        journal.write(b"\xff\xfe garbage\n[1, 2]\n")
    house.done[0].session.write_text("not json")
    house.done[1].metrics.write_bytes(b"\x00\x01\n\xff\xff\n")
    watched = Watched(house.runs)
    watched.look()
    assert watched.seen[house.path(house.failed)].status.unreadable == 2
    assert watched.seen[house.path(house.done[0])].status.experiment == "?"
    assert len(watched.seen) == len(list(run_states(house.runs)))


def test_a_directory_without_a_session_is_none_until_it_has_one(house: House) -> None:
    watched = Watched(house.runs)
    watched.look()
    half = house.done[0].path.with_name("seed-77")
    half.mkdir()
    assert not watched.look()
    record = house.done[0].read_session()
    (half / "session.json").write_text(json.dumps({**record, "seed": 77}))
    assert [one.status.seed for one in watched.look().seen] == [77]


def test_where_a_session_was_submitted_to_is_its_place(house: House) -> None:
    tell(house.new, ("submitted", {"launcher": "slurm", "job_id": 4711}))
    watched = Watched(house.runs)
    watched.look()
    seen = watched.seen[house.path(house.new)]
    assert (seen.place, seen.job) == ("slurm 4711", "4711")


def test_a_look_reads_no_longer_than_it_may(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known is shown soon, however many sessions wait to be read."""
    watched = Watched(house.runs)
    monkeypatch.setattr(facts.Followed, "look", lambda one: setattr(watched.clock, "now", watched.clock.now + 0.1))
    watched.index.look()
    assert 1 <= len(watched.index.followed) <= 3
    assert len(watched.index.unread) + len(watched.index.followed) == watched.index.total


def test_a_slow_filesystem_is_asked_less_often(house: House) -> None:
    watched = Watched(house.runs)
    watched.look(), watched.look()
    real, asked = watched.index.folders.look, []

    def slow() -> object:
        asked.append(watched.clock.now)
        watched.clock.now += 1.0
        return real()

    watched.index.folders.look = slow  # type: ignore[method-assign]
    watched.look()
    for _ in range(40):
        watched.clock.now += 1.0
        watched.index.look()
    assert len(asked) == 1, "a look that took a second is not repeated within the next forty"


def test_a_session_that_was_killed_is_no_longer_running(house: House) -> None:
    watched = Watched(house.runs)
    session = sessions_of(cartpole("killed").frames(5e4))[0]
    with running(house.runs, session) as directory:
        watched.look()
        assert watched.seen[house.path(directory)].status.state == "running"
    watched.look()
    assert watched.seen[house.path(directory)].status.state == "resume"
