"""Whatever happens to the files, the queue or the terminal: it is shown, and the monitor goes on."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from rldsl.monitor.queue import Queue, QueueRow
from rldsl.monitor.widgets.bars import SCREENS
from tests.monitor.conftest import House
from tests.monitor.drive import Driver, drive
from tests.monitor.terminal import Terminal


async def visit_every_screen(driver: Driver) -> None:
    for number in range(1, len(SCREENS) + 1):
        await driver.press(str(number))
    await driver.press("1")


def test_a_run_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    async def scenario(driver: Driver) -> None:
        assert "there is no directory" in driver.text
        await visit_every_screen(driver)
        for key in ("c", "r", "d", "t", "y", "j", "k", "G", "space", "enter", "h", "l", "o"):
            await driver.press(key)
        (tmp_path / "runs").mkdir()
        await driver.look()
        assert "no session in" in driver.text

    drive(tmp_path / "runs", scenario)


def test_a_directory_that_vanishes_while_it_is_looked_at(house: House) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.focus_on([house.path(house.done[0])])
        await driver.press("4")
        shutil.rmtree(house.done[0].path)
        await driver.settle()
        for key in ("2", "3", "4", "y", "d"):
            await driver.press(key)
        await driver.look()
        await visit_every_screen(driver)
        shutil.rmtree(house.runs)
        await driver.look()
        await driver.look()
        await visit_every_screen(driver)
        assert "there is no directory" in driver.text

    drive(house.runs, scenario)


def test_garbage_in_every_file(house: House) -> None:
    for directory in house.done:
        for name in ("session.json", "journal.jsonl", "metrics.csv", "provenance.json", "log.txt", "alive.json"):
            (directory.path / name).write_bytes(b'\xff\x00{"event": 3}\n[[[\n"' + name.encode())

    async def scenario(driver: Driver) -> None:
        assert "?" in driver.text, "an experiment without a name"
        driver.app.selected = {house.path(one) for one in house.done}
        await visit_every_screen(driver)
        driver.app.selected = {house.path(one) for one in house.done[:2]}
        for key in ("2", "m", "s", "L", "4", "d", "y", "c", "r"):
            await driver.press(key)

    drive(house.runs, scenario)


def test_a_look_that_fails_is_said_and_repeated(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(driver: Driver) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(driver.app.index.folders, "look", lambda: 1 / 0)
            await driver.look()
            assert "division by zero" in driver.text
        await driver.look()
        assert "division by zero" not in driver.text

    drive(house.runs, scenario)


def test_a_queue_that_hangs_does_not_hold_up_the_screen(house: House) -> None:
    def hangs() -> list[QueueRow]:
        time.sleep(1.5)
        raise TimeoutError("no answer")

    async def scenario(driver: Driver) -> None:
        await driver.pilot.press("6")
        await driver.pilot.pause()
        assert "asking ..." in driver.text
        await driver.pilot.press("1", "j", "6")
        await driver.until(lambda: "SLURM does not answer: no answer" in driver.text)

    drive(house.runs, scenario, queue=Queue({"SLURM": hangs}))


def test_a_terminal_of_any_size(house: House) -> None:
    async def scenario(driver: Driver) -> None:
        for columns, lines in ((1, 1), (300, 90)):
            await driver.pilot.resize_terminal(columns, lines)
            await visit_every_screen(driver)
            await driver.press("question_mark", "escape", "slash", "x", "escape")

    drive(house.runs, scenario, size=(5, 3))


def test_a_terminal_that_shrinks_while_it_runs(house: House) -> None:
    """The real program, in a real terminal."""
    terminal = Terminal("watch", house.runs)
    try:
        terminal.wait(lambda text: "14 sessions" in text)
        for columns, lines in ((80, 24), (30, 8), (10, 3), (140, 50)):
            terminal.resize(columns, lines)
            terminal.press("2")
            time.sleep(0.2)
            terminal.press("1")
            time.sleep(0.2)
        terminal.wait(lambda text: "progress" in text and "● running" in text)
        terminal.press("q")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.close()
