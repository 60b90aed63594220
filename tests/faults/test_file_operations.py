"""A session that is killed at any of its file operations and resumed has the result of one that was not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rldsl.report.run_result import session_result
from rldsl.spec.session import Session
from rldsl.store.kept_sources import SOURCES
from rldsl.store.session_dir import SessionDir
from tests.faults.kills import CountedAttempts
from tests.faults.record import FULL, every, record
from tests.project import work
from tests.train.packs import CASES, session
from tests.train.test_resume import assert_same_checkpoints

STEP = 3
"""The long version kills at every third operation."""
SOURCES_STEP = 12
"""And at every twelfth while the sources are kept, which the first session of a run directory does: one write each."""
FAMILIES = ("ppo", "dqn_prioritized", "sac", *(("reinforce", "sarsa_epsilon", "a2c", "crossq") if FULL else ()))


def small(name: str) -> Session:
    agent, env = CASES[name]
    return session(agent, env, frames=512, log_every=128, checkpoint_every=256)


def kill_at_every(step: int, name: str, folder: Path, kept: bool) -> dict[str, int]:
    """Kills a session at every n-th operation, each time from the beginning, and trains it to its end."""
    whole = CountedAttempts(folder / "whole", small(name))
    if kept:
        assert whole.run_until(None) == 0
        shutil.rmtree(whole.paths[0])
    assert whole.run_until(None) == 0
    assert whole.written_outside == []
    operations, killed = whole.operations, 0
    step = step if FULL else operations // 2 + 1  # the short version: once, in the middle
    for number in range(step, operations + 1, step):
        broken = CountedAttempts(folder / "broken", small(name))
        if kept:
            shutil.copytree(whole.runs / SOURCES, broken.runs / SOURCES)
        killed += broken.run_until(number) == -9
        assert broken.run_until(None) == 0
        check(broken, whole)
        shutil.rmtree(broken.runs)
    assert killed == len(range(step, operations + 1, step))
    return {"every": step, "operations": operations, "killed": killed, "different": 0}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_kill_at_any_file_operation_changes_nothing(name: str, tmp_path: Path) -> None:
    record(f"kills at file operations, {name}", **kill_at_every(every(1, STEP), name, tmp_path, kept=True))


@pytest.mark.timeout(1200)
def test_a_kill_of_the_first_session_of_a_run_directory(tmp_path: Path) -> None:
    record("kills at file operations, first session", **kill_at_every(every(1, SOURCES_STEP), "ppo", tmp_path, False))


def check(broken: CountedAttempts, whole: CountedAttempts) -> None:
    ours, expected = broken.paths[0], whole.paths[0]
    assert work(ours) == work(expected)
    assert_same_checkpoints(ours, expected)
    assert broken.written_outside == []
    result = session_result(SessionDir(ours))
    assert result.state == "done" and result.damage == () and result.fallbacks == ()
    left = {path.name for path in ours.rglob("*") if ".tmp" in path.name or path.name.endswith(".old")}
    assert not left and not (ours / "alive.json").exists()
