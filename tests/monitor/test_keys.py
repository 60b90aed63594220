"""Every key of every screen does something that exists, is documented, and ends neither the monitor nor a session."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from textual.binding import Binding

from rldsl.monitor.app import WatchApp
from rldsl.monitor.queue import Queue, QueueRow
from rldsl.monitor.screens.curves import CurvesScreen
from rldsl.monitor.screens.detail import DetailScreen
from rldsl.monitor.screens.dialogs import HELP
from rldsl.monitor.screens.log import LogScreen
from rldsl.monitor.screens.machine import MachineScreen
from rldsl.monitor.screens.queue import QueueScreen
from rldsl.monitor.screens.runs import RunsScreen
from rldsl.monitor.screens.search import SearchScreen
from rldsl.monitor.screens.session_view import SessionView
from rldsl.monitor.session_actions import SessionActions
from rldsl.monitor.session_notes import SessionNotes
from rldsl.monitor.widgets.bars import SCREENS
from rldsl.monitor.widgets.keyed_table import KeyedTable
from rldsl.monitor.widgets.log_view import LogView
from rldsl.monitor.widgets.tree_table import TreeTable
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive

SCREEN_CLASSES = {
    "runs": (RunsScreen, TreeTable),
    "curves": (CurvesScreen,),
    "log": (LogScreen, SessionView, LogView),
    "detail": (DetailScreen, SessionView),
    "search": (SearchScreen, KeyedTable),
    "queue": (QueueScreen, KeyedTable),
    "machine": (MachineScreen, KeyedTable),
}
EVERYWHERE = (WatchApp, SessionNotes, SessionActions)
SHOWN_AS = {
    "slash": "/", "question_mark": "?", "exclamation_mark": "!", "full_stop": ".", "comma": ",", "plus": "+",
    "minus": "-", "left_square_bracket": "[", "right_square_bracket": "]", "pageup": "pgup", "pagedown": "pgdn",
}  # fmt: skip
ALTERNATIVES = {
    *("up", "down", "left", "right", "home", "end", "equals_sign", "greater_than_sign", "less_than_sign"),
    *("ctrl+f", "ctrl+b", "pageup", "pagedown"),
}
"""Keys beside those that are documented: arrows and the like."""


def bindings(*owners: type) -> list[tuple[type, Binding]]:
    return [(owner, one) for owner in owners for one in owner.__dict__["BINDINGS"]]


@pytest.mark.parametrize("owner", list(dict.fromkeys((*EVERYWHERE, *chain(*SCREEN_CLASSES.values())))))
def test_every_key_has_an_action(owner: type) -> None:
    for _, binding in bindings(owner):
        name = binding.action.partition("(")[0]
        where = WatchApp if name.startswith("app.") else owner
        if name:
            assert hasattr(where, f"action_{name.removeprefix('app.')}"), binding


def test_every_key_is_in_the_help_and_in_the_documentation() -> None:
    documentation = (Path(__file__).parents[2] / "docs" / "monitor.md").read_text()
    classes = dict.fromkeys([*EVERYWHERE, *(one for classes in SCREEN_CLASSES.values() for one in classes)])
    for _, binding in bindings(*classes):
        keys = [key for key in binding.key.split(",") if key not in ALTERNATIVES and not key.isdigit()]
        for key in keys:
            shown = SHOWN_AS.get(key, key)
            assert f"`{shown}`" in documentation, binding
            assert shown in HELP, binding


@pytest.mark.parametrize("name", list(SCREENS))
def test_every_key_on_every_screen(sample: SampleRuns, name: str) -> None:
    """TensorBoard is started in test_control.py."""
    rows = [QueueRow("slurm", "4711", "pending", "", "a")]
    keys = [key for _, one in bindings(*SCREEN_CLASSES[name], *EVERYWHERE) for key in one.key.split(",")]
    keys.remove("t")

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive), sample.path(sample.done[0])}
        driver.app.action_quit = lambda: None  # type: ignore[method-assign, assignment]
        for key in keys:
            driver.app.action_show(name)
            await driver.pilot.pause()
            await driver.press(key)
            assert driver.app._exception is None, key
            for _ in range(3):
                if len(driver.app.screen_stack) > 1:
                    await driver.press("escape")
        assert sample.alive.state() == "running" and not sample.process.asked.is_set()

    drive(sample.runs, scenario, queue=Queue({"SLURM": lambda: rows}))
