"""An idle monitor is silent, and with 20,000 sessions it still reacts at once; no layout jumps."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.monitor.widgets.chart import Chart
from rldsl.monitor.widgets.tree_table import TreeTable
from tests.monitor import idle_traffic, many_sessions
from tests.monitor.conftest import SampleRuns
from tests.monitor.curve_load import load, write_many
from tests.monitor.drive import Driver, drive


def test_with_20_000_sessions_a_refresh_is_fast() -> None:
    """CPU time of the event loop; `python -m tests.monitor.many_sessions` prints it. The aim is 100 ms."""
    measured = many_sessions.run(20_000)
    for name, milliseconds in measured.items():
        assert milliseconds < 200, (name, milliseconds)


def test_an_idle_monitor_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m tests.monitor.idle_traffic` measures a minute."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert idle_traffic.measure(tmp_path / "runs", seconds=6) < 1000


def test_a_curve_of_many_log_points_takes_little_memory(tmp_path: Path) -> None:
    """`python -m tests.monitor.curve_load` loads 1e6: the aims are 2 s and 150 MB."""
    write_many(tmp_path / "metrics.csv", 60_000)
    seconds, megabytes, curve = load(tmp_path / "metrics.csv")
    assert curve.rows == 60_000 and len(curve.points("frame", "episode_return").x) <= 4097
    assert megabytes < 60 and seconds < 10


def test_nothing_is_drawn_twice(sample: SampleRuns) -> None:
    """A refresh without changes sends nothing; one new log point only its cells."""

    async def scenario(driver: Driver) -> None:
        table = driver.app.screen.table
        now = table.clock()
        table.clock = lambda: now  # otherwise the age of a session grows when a second passes, and its cell is drawn
        table.repaint()
        asked: list[object] = []
        refresh = table.refresh
        table.refresh = lambda *regions, **more: (asked.extend(regions or ["all"]), refresh(*regions, **more))[1]
        driver.app.refresh_screen()
        driver.app.screen.tick()
        assert not asked
        await driver.press("j")
        assert 0 < len(asked) <= 2 and "all" not in asked, "the rows that the cursor leaves and enters"

    drive(sample.runs, scenario)


def test_the_layout_does_not_jump(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("j", "2")
        widths = {}
        for columns in (109, 110, 111, 159):
            await driver.pilot.resize_terminal(columns, 40)
            await driver.settle()
            widths[columns] = driver.app.screen.query_one("#chart", Chart).size.width
        assert widths == {columns: columns for columns in widths}
        await driver.press("1")
        tree = {}
        for columns in (110, 159, 160, 200):
            await driver.pilot.resize_terminal(columns, 40)
            await driver.settle()
            tree[columns] = driver.app.screen.query_one(TreeTable).size.width
        assert tree[159] == 159 and tree[160] == 96 and tree[200] == 120, "from 160 columns on, the panel has 40%"
        assert "episode_return" in driver.text

    drive(sample.runs, scenario)


def test_a_theme_changes_everything_that_is_shown(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        for key in "1234567":
            await driver.press(key)
            before = colours(driver)
            await driver.press("ctrl+t")
            assert not before & colours(driver), f"screen {key} keeps a colour"
            await driver.press("ctrl+t")

    def colours(driver: Driver) -> set[str]:
        strips = driver.app.screen._compositor.render_strips()
        styles = [segment.style for strip in strips for segment in strip if segment.style and segment.text.strip()]
        return {style.color.name for style in styles if style.color} - {"default"}

    drive(sample.runs, scenario)
