"""Missing or corrupt files, hanging queues and tiny terminals: the monitor shows what it can and keeps running."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from rich.cells import cell_len

from rldsl.monitor.queue import Queue, QueueRow
from rldsl.monitor.screens.dialogs import Help
from rldsl.monitor.widgets.bars import SCREENS
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.terminal import Terminal
from tests.project import until


async def visit_every_screen(driver: Driver) -> None:
    """Opens every screen and checks that it is shown and fits into the terminal."""
    for number, name in enumerate(SCREENS, 1):
        await driver.press(str(number))
        assert driver.app.current_mode == name
        assert_fits(driver)
    await driver.press("1")


def assert_fits(driver: Driver) -> None:
    columns, lines = driver.app.size
    text = driver.text.splitlines()
    assert len(text) <= lines
    assert max(map(cell_len, text), default=0) <= columns


def test_a_run_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    async def scenario(driver: Driver) -> None:
        assert "there is no directory" in driver.text
        await visit_every_screen(driver)
        for key in ("c", "r", "d", "t", "y", "j", "k", "G", "space", "enter", "h", "l", "o"):
            await driver.press(key)
        (tmp_path / "runs").mkdir()
        await driver.refresh()
        assert "no session in" in driver.text

    drive(tmp_path / "runs", scenario)


def test_a_directory_that_is_deleted_while_it_is_shown(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.done[0])}
        await driver.press("4")
        shutil.rmtree(sample.done[0].path)
        await driver.settle()
        for key in ("2", "3", "4", "y", "d"):
            await driver.press(key)
        await driver.refresh()
        await visit_every_screen(driver)
        shutil.rmtree(sample.runs)
        await driver.refresh()
        await driver.refresh()
        await visit_every_screen(driver)
        assert "there is no directory" in driver.text

    drive(sample.runs, scenario)


def test_unreadable_files(sample: SampleRuns) -> None:
    for directory in sample.done:
        for name in ("session.json", "journal.jsonl", "metrics.csv", "provenance.json", "log.txt", "alive.json"):
            (directory.path / name).write_bytes(b'\xff\x00{"event": 3}\n[[[\n"' + name.encode())

    async def scenario(driver: Driver) -> None:
        assert "?" in driver.text, "an experiment without a name"
        driver.app.selected = {sample.path(one) for one in sample.done}
        await visit_every_screen(driver)
        driver.app.selected = {sample.path(one) for one in sample.done[:2]}
        for key in ("2", "m", "s", "L", "4", "d", "y", "c", "r"):
            await driver.press(key)
        await driver.press("escape", "escape", "1")
        assert driver.app.current_mode == "runs"
        assert "● running" in driver.text, "the readable sessions are still shown"

    drive(sample.runs, scenario)


def test_an_error_while_reading_is_shown_until_it_is_gone(sample: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(driver: Driver) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(driver.app.index.scanner, "scan", lambda: 1 / 0)
            await driver.refresh()
            assert "division by zero" in driver.text
        await driver.refresh()
        assert "division by zero" not in driver.text

    drive(sample.runs, scenario)


def test_a_queue_that_hangs_does_not_block_the_screen(sample: SampleRuns) -> None:
    answer = threading.Event()

    def hangs() -> list[QueueRow]:
        answer.wait(60)
        raise TimeoutError("no answer")

    async def scenario(driver: Driver) -> None:
        await driver.pilot.press("6")
        await driver.pilot.pause()
        assert "polling ..." in driver.text
        await driver.pilot.press("1", "j", "6")
        assert driver.app.current_mode == "queue" and "does not answer" not in driver.text
        answer.set()
        await driver.until(lambda: "SLURM does not answer: no answer" in driver.text)

    drive(sample.runs, scenario, queue=Queue({"SLURM": hangs}))


def test_a_terminal_of_any_size(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        for size in ((5, 3), (1, 1), (300, 90)):
            await driver.pilot.resize_terminal(*size)
            assert driver.app.size == size
            await visit_every_screen(driver)
            await driver.press("question_mark")
            assert isinstance(driver.app.screen, Help)
            assert_fits(driver)
            await driver.press("escape", "slash", *"failed")
            assert len(driver.app.screen.table.rows) == 2, "the filter works at every size"
            assert_fits(driver)
            await driver.press("escape")
            assert len(driver.app.screen.table.rows) > 10
        assert "✗ failed" in driver.text, "after the terminal has grown, everything is shown again"

    drive(sample.runs, scenario, size=(5, 3))


def test_a_terminal_that_shrinks_while_it_runs(sample: SampleRuns) -> None:
    """The real program, in a real terminal."""
    terminal = Terminal("watch", sample.runs)
    try:
        terminal.wait(lambda text: "14 sessions" in text)
        for columns, lines in ((80, 24), (30, 8), (10, 3), (140, 50)):
            terminal.resize(columns, lines)
            before = terminal.bytes
            terminal.press("21")
            until(lambda before=before: terminal.bytes > before, 60)
        terminal.wait(lambda text: "progress" in text and "● running" in text)
        terminal.press("q")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()
