"""The directory of a search."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl import PPO, Classic, experiment, uniform
from rldsl.spec.experiment import Experiment
from rldsl.spec.session import Override
from rldsl.store.errors import AlreadyRunning, StoreError
from rldsl.store.search_dir import SEARCH, SearchDir, search_dirs


def made(trials: int = 4) -> Experiment:
    base = experiment("x").env(Classic("CartPole-v1")).agent(PPO()).frames(1e4)
    return base.search(gamma=uniform(0.9, 0.99)).random(trials).build()


def test_a_reader_needs_no_experiment_file(tmp_path: Path) -> None:
    override = Override(path="budget.frames", was=5, now=10_000, source="--frames 1e4")
    created = SearchDir.create(tmp_path, made(), "abc", [override])
    assert created.path == tmp_path / ".searches" / "x-ppo-search-abc"
    (found,) = search_dirs(tmp_path)
    assert found.path == created.path
    assert found.experiment() == made() and found.overrides() == (override,)


def test_an_extended_search_is_written_and_keeps_its_journal(tmp_path: Path) -> None:
    SearchDir.create(tmp_path, made(), "abc").append("suggested", trial=0, point={}, id="t")
    extended = SearchDir.create(tmp_path, made(9), "abc")
    assert extended.experiment() == made(9) and len(extended.events()) == 1


def test_events_are_read_as_they_are_written(tmp_path: Path) -> None:
    writer = SearchDir.create(tmp_path, made(), "abc")
    reader = SearchDir(writer.path)
    assert list(reader.events()) == []
    writer.append("suggested", trial=0, point={"agent.gamma": 0.95}, id="t")
    with writer.journal.path.open("a") as journal:
        journal.write("no event\n")
    writer.append("started", trial=0, rung=0, seeds=[1])
    assert [event["event"] for event in reader.events()] == ["suggested", "started"]
    assert [event["event"] for event in reader.events()] == ["suggested", "started"], "all of them, every time"


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    search = SearchDir.create(tmp_path, made(), "abc")
    with search.claim():
        assert search.running
        sentence = r"the search x-ppo-search-abc is already running on .* as process"
        with pytest.raises(AlreadyRunning, match=sentence), SearchDir(search.path).claim():
            pass
    assert not search.running


def test_damage_is_one_sentence(tmp_path: Path) -> None:
    search = SearchDir.create(tmp_path, made(), "abc")
    (search.path / SEARCH).write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        search.experiment()
    (search.path / SEARCH).write_text('{"schema": 1}')
    with pytest.raises(StoreError, match="has schema 1"):
        search.experiment()
