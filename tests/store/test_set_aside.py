"""Sessions that are set aside: nothing counts them, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.store.errors import AlreadyRunning
from rldsl.store.journal import read_journal
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir
from rldsl.store.set_aside import all_set_aside, older_versions, set_aside

RELATIVE = "cartpole-v1/ppo-0123456789ab/seed-1"


def made(runs: Path, frame: int) -> SessionDir:
    directory = SessionDir.create(runs, RELATIVE, {"schema": 2}, "")
    directory.journal.append("started", frame=0)
    directory.journal.append("done", frame=frame)
    return directory


def test_it_is_renamed_and_can_be_brought_back(tmp_path: Path) -> None:
    directory = made(tmp_path, 100)
    goal = set_aside(directory)
    assert goal.name == "seed-1.old-1"
    assert not directory.exists()
    assert list(Runs(tmp_path).sessions()) == []
    assert SessionDir(goal).read_state().state == "done", "no process holds it"
    assert read_journal(goal / "journal.jsonl")[-1]["event"] == "set_aside"
    goal.rename(directory.path)
    assert Runs(tmp_path).find("0123456789ab-s1").read_state().frame == 100


def test_each_one_has_a_number(tmp_path: Path) -> None:
    for frame in (1, 2, 3):
        set_aside(made(tmp_path, frame))
    directory = SessionDir(tmp_path / RELATIVE)
    assert [path.name for path in older_versions(directory.path)] == [f"seed-1.old-{n}" for n in (1, 2, 3)]
    assert [SessionDir(path).read_state().frame for path, _ in all_set_aside(tmp_path)] == [1, 2, 3]
    assert {original for _, original in all_set_aside(tmp_path)} == {directory.path}


def test_a_session_that_runs_stays(tmp_path: Path) -> None:
    directory = made(tmp_path, 1)
    with directory.claim(), pytest.raises(AlreadyRunning):
        set_aside(directory)
    assert directory.exists()
