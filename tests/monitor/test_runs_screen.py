"""The screen Runs: the tree, its keys, the mouse and the filter, at 80 x 24 and wider."""

from __future__ import annotations

from textual.widgets import Input

from rldsl.monitor.screens.runs import RunsScreen
from rldsl.monitor.session_tree import ORDERS
from rldsl.monitor.widgets.tree_table import TreeTable
from rldsl.store.metrics import MetricsWriter
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import COLUMNS, row


def table(driver: Driver) -> TreeTable:
    assert isinstance(driver.app.screen, RunsScreen)
    return driver.app.screen.table


def test_every_session_has_a_row_with_its_numbers(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        assert "✗ failed" in driver.line("seed 0")
        alive = next(line for line in driver.text.splitlines() if "● running" in line)
        for words in ("local", "20k/100k", "1k", "90.0", "450", "1m 20s"):
            assert words in alive
        for state in ("new", "resume", "done"):
            assert state in driver.text
        assert "●1" in driver.text.splitlines()[0], "the totals"

    drive(sample.runs, scenario, size=(140, 40))


def test_the_layout_at_80_x_24(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        lines = driver.text.splitlines()
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        for words in ("7 Machine", "progress", "return", "target", "left", "✗ failed"):
            assert words in driver.text
        await driver.press("j", "j")
        assert "frames 100k" in driver.text, "columns that do not fit are shown for the row under the cursor"

    drive(sample.runs, scenario, size=(80, 24))


def test_the_keys_move_like_vim_and_like_arrows(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        last = len(table(driver).rows) - 1
        for keys, there in (
            (("j", "j", "k"), 1),
            (("down", "up"), 1),
            (("G",), last),
            (("g",), 0),
            (("end",), last),
            (("home",), 0),
            (("ctrl+d",), min(last, 34)),
            (("ctrl+u",), 0),
            (("k",), 0),
        ):
            await driver.press(*keys)
            assert table(driver).cursor == there, keys

    drive(sample.runs, scenario)


def test_groups_fold_and_unfold(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        whole = len(table(driver).rows)
        await driver.press("h")
        assert len(table(driver).rows) == whole - 2
        await driver.press("l")
        assert len(table(driver).rows) == whole
        await driver.press("j", "j", "left")
        assert table(driver).cursor == 0, "from a session to its group"
        await driver.press("enter", "enter")
        assert len(table(driver).rows) == whole
        await driver.press("H")
        assert {row.depth for row in table(driver).rows} == {0}
        await driver.press("L")
        assert len(table(driver).rows) == whole

    drive(sample.runs, scenario)


def test_space_selects_sessions_and_groups(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("space")
        assert len(driver.app.selected) == 2
        assert "2 selected" in driver.text
        assert "◆" in driver.line("cartpole/a2c")
        await driver.press("space")
        assert len(driver.app.selected) == 1
        await driver.press("u")
        assert not driver.app.selected
        await driver.press("space", "escape")
        assert not driver.app.selected

    drive(sample.runs, scenario)


def test_the_filter_works_as_it_is_typed(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("slash", *"status:fai")
        assert [row.label for row in table(driver).rows] == ["cartpole/a2c", "seed 0"]
        await driver.press("enter")
        assert table(driver).has_focus
        assert "1 of 14 sessions" in driver.text
        assert "filter: status:fai" in driver.text
        await driver.press("escape")
        assert len(table(driver).rows) > 10
        await driver.press("slash", *"stat:x")
        assert "stat is not a field; did you mean status" in driver.text
        driver.app.screen.query_one(Input).value = "nothing-like-this"
        await driver.settle()
        assert "nothing matches the filter" in driver.text

    drive(sample.runs, scenario)


def test_o_cycles_through_the_orders(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        for name in [*list(ORDERS)[1:], "name"]:
            await driver.press("o")
            assert driver.app.session_tree.order == name
            assert f"by {name}" in driver.text
        await driver.press("O")
        assert "by name reversed" in driver.text
        assert table(driver).rows[0].label == "cartpole/ppo-search"

    drive(sample.runs, scenario)


def test_the_cursor_stays_on_its_row(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("j", "j", "j")
        key = table(driver).current_row.key
        await driver.press("O")
        assert table(driver).current_row.key == key

    drive(sample.runs, scenario)


def test_a_new_log_point_changes_the_row(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        MetricsWriter(sample.alive.metrics, COLUMNS).write(row(60_000, 456.5))
        await driver.refresh()
        assert "456.5" in driver.text
        assert "60k/100k" in driver.text

    drive(sample.runs, scenario)


def test_the_mouse_moves_folds_and_opens(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        whole = len(table(driver).rows)
        await driver.pilot.click(TreeTable, offset=(20, 2))
        assert table(driver).cursor == 1
        await driver.pilot.click(TreeTable, offset=(3, 1))
        await driver.settle()
        assert len(table(driver).rows) == whole - 2
        await driver.pilot.click(TreeTable, offset=(3, 1))
        await driver.pilot.click(TreeTable, offset=(20, 2), times=2)
        await driver.settle()
        assert driver.app.current_mode == "detail"

    drive(sample.runs, scenario)


def test_the_theme_changes_every_colour(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        def backgrounds() -> set[str]:
            strip = table(driver).render_line(1)
            return {str(segment.style.bgcolor.name) for segment in strip if segment.style and segment.style.bgcolor}

        dark = backgrounds()
        await driver.press("ctrl+t")
        assert driver.app.theme == "rldsl-light"
        assert not dark & backgrounds()
        await driver.press("ctrl+t")
        assert backgrounds() == dark

    drive(sample.runs, scenario)
