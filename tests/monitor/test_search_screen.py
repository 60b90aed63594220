"""The screen Search: the leaderboards of the searches of a run directory."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from textual.widgets import DataTable

from rldsl import uniform
from rldsl.monitor.search_index import SearchIndex
from rldsl.search.identity import search_id
from rldsl.store.search_dir import SEARCHES, SearchDir
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import cartpole, make_search
from tests.search.recorded import AXES, CARTPOLE, asha, record


def board(driver: Driver) -> list[list[str]]:
    table = driver.app.screen.query_one(DataTable)
    return [[str(cell) for cell in table.get_row_at(index)] for index in range(table.row_count)]


def write(runs: Path, events: list[dict[str, object]], trials: int = 12) -> SearchDir:
    searched = asha(trials)
    directory = SearchDir.create(runs, searched, search_id(searched))
    for event in events:
        directory.append(**event)  # type: ignore[arg-type]
    return directory


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def test_the_leaderboard_has_the_best_first(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("5")
        assert "3 trials of 1 search" in driver.text
        assert board(driver)[0][:7] == ["1", "cartpole/ppo-search", "2", "145.0", "2", "✓ done", "145.0"]
        assert [row[2] for row in board(driver)] == ["2", "1", "0"]
        assert "gamma" in driver.text
        await driver.press("j", "enter")
        assert driver.app.current_mode == "curves"
        assert len(driver.app.chosen()) == 2

    drive(sample.runs, scenario)


def test_a_search_is_followed_while_it_runs(tmp_path: Path) -> None:
    journal = record(asha(12), fails=(3,))
    directory = write(tmp_path, journal[:4])

    async def scenario(driver: Driver) -> None:
        await driver.press("5")
        assert [row[6] for row in board(driver)] == ["● running", "● running"]
        assert {row[4] for row in board(driver)} == {"-→0"}
        await driver.press("j")
        key = driver.app.screen.table.current_key
        for event in journal[4:]:
            directory.append(**event)
        with directory.claim():
            await driver.refresh()
            assert "12 trials of 1 search, 1 running" in driver.text
        assert driver.app.screen.table.current_key == key, "the cursor stays on its trial"
        rows = board(driver)
        assert rows[0][4:7] == ["2", "1", "✓ done"] and rows[-1][6] == "✗ failed"
        assert {row[6] for row in rows[1:-1]} <= {"✓ done", "‖ paused"}
        await driver.refresh()
        assert "running" not in driver.text.splitlines()[-2]

    drive(tmp_path, scenario, size=(140, 40))


def test_a_search_of_a_thousand_trials_is_shown_quickly(tmp_path: Path) -> None:
    search = CARTPOLE.search(**AXES).random(trials=1000)
    make_search(tmp_path, search, record(search.build(), workers=50))

    async def scenario(driver: Driver) -> None:
        await driver.press("5")
        assert "1,000 trials of 1 search" in driver.text and len(board(driver)) == 1000
        start = time.process_time()
        await driver.refresh()
        assert time.process_time() - start < 2

    drive(tmp_path, scenario)


def test_a_damaged_search_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, record(asha(3)), 3)
    other = make_search(tmp_path, cartpole("other").search(gamma=uniform(0.9, 0.99)).random(trials=2), [])
    (other.path / "search.json").write_text("{}")
    index = SearchIndex(tmp_path)
    assert index.refresh() and [len(one.rows) for one in index.snapshots.values()] == [3]
    assert not index.refresh()
    (tmp_path / SEARCHES / next(iter(index.snapshots)) / "journal.jsonl").write_text('{"event": "finished"}\n')
    index.refresh()
    assert len(index.snapshots) == 1
