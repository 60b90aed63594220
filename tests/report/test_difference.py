"""The differences between two sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rldsl.report.difference import SessionDifference, session_differences, setting_differences
from rldsl.store.session_dir import SessionDir

RECORD = {"experiment": "a", "trial": {"agent": {"kind": "ppo", "gamma": 0.99}, "env": {"id": "x"}}, "seed": 0}


def make(runs: Path, seed: int, record: dict[str, Any], *provenance: dict[str, Any]) -> SessionDir:
    directory = SessionDir.create(runs, f"cartpole-v1/ppo-0123456789ab/seed-{seed}", record, "")
    for number, facts in enumerate(provenance, 1):
        name = "provenance.json" if number == 1 else f"provenance-{number}.json"
        (directory.path / name).write_text(json.dumps(facts))
    return directory


def test_settings_are_compared_by_their_paths() -> None:
    other = {**RECORD, "trial": {"agent": {"kind": "ppo", "gamma": 0.9}, "env": {"id": "x"}}, "seed": 3}
    assert setting_differences(RECORD, other) == [
        SessionDifference("settings", "agent.gamma", 0.99, 0.9),
        SessionDifference("settings", "seed", 0, 3),
    ]


def test_the_name_of_the_experiment_is_not_a_setting() -> None:
    assert setting_differences(RECORD, {**RECORD, "experiment": "b"}) == []


def test_settings_come_before_the_newest_provenance(tmp_path: Path) -> None:
    old = {"code": {"sha": "old"}, "packages": {"torch": "2.6"}, "python": "3.11", "host": "a"}
    new = {"code": {"sha": "new"}, "packages": {"torch": "2.7"}, "python": "3.11", "host": "a"}
    first = make(tmp_path, 0, RECORD, old, new)
    second = make(tmp_path, 1, {**RECORD, "seed": 1}, {**new, "host": "b", "packages": {}})
    assert session_differences(first, second) == [
        SessionDifference("settings", "seed", 0, 1),
        SessionDifference("package", "torch", "2.7", None),
        SessionDifference("host", "host", "a", "b"),
    ]
    assert session_differences(first, first) == []


def test_a_session_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    first = make(tmp_path, 0, RECORD)
    missing = SessionDir(tmp_path / "cartpole-v1/ppo-0123456789ab/seed-9")
    problem = "cannot be read: No such file or directory"
    assert session_differences(first, missing) == [
        SessionDifference("settings", "session.json", "can be read", problem)
    ]
