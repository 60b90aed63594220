"""Bit flips and truncations of the files of a session: they are noticed, or they change nothing."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldsl.report.run_result import session_result
from rldsl.report.status import run_states
from rldsl.spec.errors import SpecError
from rldsl.spec.session import Session
from rldsl.store.checkpoint import load_checkpoint
from rldsl.store.errors import CheckpointDamaged, StoreError
from rldsl.store.integrity import metrics_damage
from rldsl.store.journal import read_journal
from rldsl.store.metrics import restore_metrics
from rldsl.store.session_dir import SessionDir
from rldsl.store.states import split_state
from tests.faults.record import cases, every, record
from tests.project import work
from tests.train.packs import PPO_SMALL, session, train
from tests.train.test_integrity import at_frame

ONE = session(PPO_SMALL, frames=512, checkpoint_every=128)
OUTCOMES = ("noticed", "unchanged")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> SessionDir:
    return train(tmp_path_factory.mktemp("finished"), ONE).directories[0]


def flipped(whole: bytes, number: int) -> Iterator[bytes]:
    stream = random.Random(len(whole))
    for _ in range(number):
        bit = stream.randrange(8 * len(whole))
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


def cut(whole: bytes) -> Iterator[bytes]:
    return (whole[:length] for length in range(0, len(whole), every(max(1, len(whole) // 40))))


def try_all(name: str, path: Path, outcome: Callable[[], str]) -> None:
    """Damages a file in every way; each time, the damage is noticed or has no effect. Then restores the file."""
    whole = path.read_bytes()
    for kind, damaged in (("bit flips", flipped(whole, cases(200, 3000))), ("truncations", cut(whole))):
        numbers = dict.fromkeys(OUTCOMES, 0)
        for data in damaged:
            path.write_bytes(data)
            numbers[outcome()] += 1
        path.write_bytes(whole)
        record(f"{name}, {kind}", cases=sum(numbers.values()), bytes=len(whole), wrong=0, **numbers)


def test_metrics_of_a_session_that_goes_on(
    finished: SessionDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # thousands of files, and no power failure
    saved = load_checkpoint(finished.checkpoints)
    assert saved is not None
    path = tmp_path / "metrics.csv"
    whole = finished.metrics.read_bytes()
    path.write_bytes(whole)

    def outcome() -> str:
        told = restore_metrics(path, saved.state["metrics"], saved.frame)
        assert path.read_bytes() == whole
        return "noticed" if told else "unchanged"

    try_all("metrics, resumed", path, outcome)


def test_metrics_of_a_session_that_is_done(finished: SessionDir) -> None:
    def outcome() -> str:
        result = session_result(finished)
        assert metrics_damage(finished.metrics, finished.read_state())
        assert any("metrics.csv" in one for one in result.damage)
        return "noticed"

    try_all("metrics, finished", finished.metrics, outcome)


def test_journal(finished: SessionDir) -> None:
    whole = read_journal(finished.journal.path)
    expected = finished.read_state()

    def outcome() -> str:
        events = read_journal(finished.journal.path)
        assert all(event in whole for event in events if isinstance(event, dict)), "an event that was never written"
        state = finished.read_state()
        session_result(finished)
        if state == expected:
            return "unchanged"
        assert state.unreadable or state.state != "done", "as if it had not ended, and it is resumed"
        return "noticed"

    try_all("journal", finished.journal.path, outcome)


def test_session_record(finished: SessionDir) -> None:
    expected = finished.read_session()

    def outcome() -> str:
        list(run_states(finished.path.parents[2]))
        session_result(finished)
        try:
            record_ = finished.read_session()
            Session.from_record(record_, finished.path)
        except (StoreError, SpecError) as error:
            assert "\n" not in str(error)
            return "noticed"
        assert {name: record_.get(name) for name in expected} == expected
        return "unchanged"

    try_all("session record", finished.session, outcome)


@pytest.mark.parametrize("name", ["arrays.safetensors", "state.json", "manifest.json"])
def test_checkpoint(finished: SessionDir, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    newest = sorted(finished.checkpoints.glob("0*"))[-1]
    shutil.copytree(newest, folder / newest.name)
    saved = load_checkpoint(folder)
    assert saved is not None
    expected = split_state(saved.state)

    def outcome() -> str:
        try:
            loaded = load_checkpoint(folder)
        except CheckpointDamaged as error:
            assert "\n" not in str(error)
            return "noticed"
        assert loaded is not None and loaded.frame == saved.frame and same(split_state(loaded.state), expected)
        return "unchanged"

    try_all(f"checkpoint, {name}", folder / newest.name / name, outcome)


def same(ours: tuple[Any, Any], expected: tuple[Any, Any]) -> bool:
    (tree, arrays), (its_tree, its_arrays) = ours, expected
    equal = tree == its_tree and arrays.keys() == its_arrays.keys()
    return equal and all(np.array_equal(arrays[name], its_arrays[name], equal_nan=True) for name in arrays)


@pytest.mark.parametrize("number", range(cases(2, 40)))
def test_a_session_with_random_damage_is_resumed_to_the_same_end(
    finished: SessionDir, number: int, tmp_path: Path
) -> None:
    """One flip in any file of a stopped session: it ends as an undisturbed one, or with one sentence."""
    directory = train(tmp_path, ONE, stop=at_frame(256)).directories[0]
    stream = random.Random(number)
    files = [path for path in directory.path.rglob("*") if path.is_file() and path.stat().st_size]
    path = stream.choice(sorted(one for one in files if "tb" not in one.parts and one.name not in ("lock", "log.txt")))
    (damaged,) = flipped(path.read_bytes(), 1)
    path.write_bytes(damaged)
    train(tmp_path, ONE)
    assert work(directory.path) == work(finished.path)
    record("one flip in any file of a stopped session", cases=cases(2, 40), different=0)
