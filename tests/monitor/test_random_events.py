"""Random keys, clicks, resizes and refreshes while files are corrupted and deleted: nothing ends the monitor.

150 events in the usual tests; `make faults` runs 5,000. Sessions that are stopped belong to a real process, and resumed
ones are trained. TensorBoard takes seconds to start: it is left to test_control.py.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from textual.events import Key

from rldsl.monitor.queue import Queue, QueueRow
from tests.faults.record import cases, record
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.test_robust import assert_fits

EVENTS = cases(150, 5000)
KEYS = (
    *"1234567", *"1234567", *"cryndTNESFCpBHLhlgGjkoOuqvsmMeixXwaf", "space", "enter", "escape", "slash", "tab",
    "up", "down", "left", "right", "pageup", "pagedown", "home", "end", "ctrl+d", "ctrl+u", "ctrl+t", "plus", "minus",
    "0", "full_stop", "comma", "question_mark", "exclamation_mark", "left_square_bracket", "right_square_bracket",
    "backspace", *">=.:/-", *"return or gamma",
)  # fmt: skip
SIZES = ((80, 24), (120, 40), (200, 60), (40, 10), (5, 3), (159, 30), (160, 30))
HELD = ("lock", "alive.json")
"""Files of the process that holds a session."""
GARBAGE = (b"", b"\xff\x00nonsense\n[[[", b'{"event": "done", "time": "x"}\n', b"frame,x\n1,2\n1,2,3\n", b"{" * 5000)


def damage(runs: Path, copy: Path, chance: random.Random) -> None:
    """Corrupts, deletes or restores something."""
    files = sorted(path for path in runs.rglob("*") if path.is_file() and path.name not in HELD)
    what = chance.randrange(7)
    if not files or what == 6:
        restore(runs, chance.choice(sorted(copy.rglob("seed-*"))), copy)
        return
    path = chance.choice(files)
    if what == 0:
        path.unlink()
    elif what == 1 and path.parent.name.startswith("seed-"):
        shutil.rmtree(path.parent, ignore_errors=True)
    elif what == 2:
        path.write_bytes(path.read_bytes()[: chance.randrange(1 + path.stat().st_size)])
    elif what == 3:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(path.read_bytes() + chance.choice(GARBAGE) if what == 4 else chance.choice(GARBAGE))


def restore(runs: Path, session: Path, copy: Path) -> None:
    """Brings back a session that was damaged or deleted."""
    target = runs / session.relative_to(copy)
    for path in target.iterdir() if target.is_dir() else ():
        if path.name not in HELD:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with suppress(OSError):  # a file may be where one of its directories was
        shutil.copytree(session, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*HELD))


async def one_event(driver: Driver, runs: Path, copy: Path, chance: random.Random) -> None:
    """A key, a click, a resize or a refresh."""
    kind = chance.random()
    width, height = driver.app.size
    if kind < 0.4:
        await driver.pilot.press(chance.choice(KEYS))
    elif kind < 0.8:  # without waiting until the last one is drawn
        key = chance.choice(KEYS)
        driver.app.post_message(Key(key, key if len(key) == 1 else None))
        await asyncio.sleep(0)
    elif kind < 0.88:
        x, y = chance.randrange(width), chance.randrange(height)
        action: Callable[..., object] = chance.choice([driver.pilot.click, driver.pilot.hover])
        await action(offset=(x, y))  # type: ignore[misc]
    elif kind < 0.91:
        await driver.pilot.resize_terminal(*chance.choice(SIZES))
    else:
        damage(runs, copy, chance)
        driver.app.index._next_scan = driver.app.index._next_idle_check = -1.0
        driver.app.apply(driver.app.refresh_index())


@pytest.mark.parametrize("seed", [1])
@pytest.mark.timeout(3600)
def test_nothing_ends_the_monitor(sample: SampleRuns, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sample.runs.parent)
    copy = Path(shutil.copytree(sample.runs, sample.runs.parent / "copy"))
    chance = random.Random(seed)
    rows = [QueueRow("slurm", "4711", "pending", "", "a")]

    async def scenario(driver: Driver) -> None:
        driver.app.action_quit = lambda: None  # type: ignore[method-assign, assignment]
        for number in range(EVENTS):
            await one_event(driver, sample.runs, copy, chance)
            assert driver.app._exception is None and driver.app.is_running, f"after {number} events"
        await driver.pilot.resize_terminal(120, 40)
        while len(driver.app.screen_stack) > 1:
            await driver.press("escape")
        for key in "1234567":
            await driver.press(key)
            assert_fits(driver)

    drive(sample.runs, scenario, queue=Queue({"SLURM": lambda: rows}), settings=sample.runs.parent / "watch.json")
    record("random events in the monitor", events=EVENTS, ended_the_monitor=0)
