"""The screen Log is never empty, and `[` and `]` switch sessions; files are read in threads."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rldsl.monitor.log_tail import LogTail
from rldsl.monitor.screens.log import LogScreen
from rldsl.monitor.session_log import MergedLog, SessionLog
from rldsl.store.session_dir import SessionDir
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import append_events


def lines(driver: Driver) -> list[str]:
    assert isinstance(driver.app.screen, LogScreen)
    return list(driver.app.screen.view.lines)


def test_without_output_the_journal_is_shown(sample: SampleRuns) -> None:
    sample.done[0].log.touch()

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.done[0])}
        await driver.press("3")
        assert "log.txt is empty; the journal:" in driver.text
        assert all(event in driver.text for event in ("created", "started", "checkpoint", "done"))
        assert "journal, the log is empty" in driver.text
        append_events(sample.done[0], ("evaluated", {"score": 12}))
        await driver.until(lambda: "score=12" in driver.text)
        sample.done[0].log.write_text("now it prints\n")
        await driver.until(lambda: "now it prints" in driver.text)
        assert "created" not in driver.text, "the log replaces the journal"

    drive(sample.runs, scenario)


def test_every_session_has_a_log(sample: SampleRuns) -> None:
    for directory in (sample.alive, sample.failed, sample.stopped, sample.new, *sample.done):
        _, new = SessionLog(sample.runs, sample.path(directory)).read_new()
        assert new


def test_the_logs_of_siblings_are_merged(sample: SampleRuns) -> None:
    for seed in (0, 1):
        sample.done[seed].log.write_text(f"from seed {seed}\n")

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.done[0])}
        await driver.press("3")
        assert "from seed 0" in driver.text and "from seed 1" not in driver.text
        await driver.press("a")
        for directory, words in zip(sample.done[:2], ("from seed 0", "from seed 1"), strict=True):
            assert f"{directory.id} │ {words}" in driver.text
        with sample.done[1].log.open("a") as log:
            log.write("more\n")
        await driver.until(lambda: "│ more" in driver.text)
        await driver.press("a")
        assert "from seed 1" not in driver.text

    drive(sample.runs, scenario)


def test_brackets_switch_between_sessions(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive), sample.path(sample.failed), sample.path(sample.stopped)}
        for key in ("3", "4"):
            await driver.press(key)
            seen = []
            for _ in range(3):
                seen.append(driver.app.chosen()[0].path)
                await driver.press("right_square_bracket")
            assert set(seen) == driver.app.selected
            assert driver.app.chosen()[0].path == seen[0]
            await driver.press("left_square_bracket")
            assert driver.app.chosen()[0].path == seen[-1]
        driver.app.selected = set()
        await driver.press("1", "j", "enter")
        first = driver.app.chosen()[0].path
        await driver.press("right_square_bracket")
        assert driver.app.chosen()[0].path != first, "a single session: the next one of the tree"

    drive(sample.runs, scenario)


def test_log_and_detail_read_in_threads_and_only_what_changed(
    sample: SampleRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    main = threading.current_thread().name
    tail, record = LogTail.read_new, SessionDir.read_session

    def read_new(log: LogTail) -> list[str]:
        threads.append(threading.current_thread().name)
        return tail(log)

    def read_session(directory: SessionDir) -> object:
        threads.append(threading.current_thread().name)
        return record(directory)

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.done[0])}
        monkeypatch.setattr(LogTail, "read_new", read_new)
        await driver.press("3")
        monkeypatch.setattr(SessionDir, "read_session", read_session)
        await driver.press("4")
        assert threads and main not in threads
        threads.clear()
        for _ in range(3):
            driver.app.screen.refresh_content()
            await driver.settle()
        assert not threads, "nothing has changed"

    drive(sample.runs, scenario)


def test_unreadable_lines_and_times(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('nonsense\n{"event": "a", "time": 1e300}\n{"event": "b", "time": "x"}\n')
    _, new = MergedLog(tmp_path, {".": "name"}).read_new()
    assert [line.split()[0] for line in new[1:]] == ["unreadable:", "?", "?"]
