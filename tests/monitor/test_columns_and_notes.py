"""Columns, sorting, saved filters, sparklines, tags and notes, and what is remembered between two starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.widgets import Input

from rldsl.monitor.settings import RunsView, Settings, load_settings, save_settings, settings_path
from rldsl.monitor.trends import BLOCKS, sample_metric, sparkline
from rldsl.monitor.widgets.tree_table import TreeTable
from rldsl.report.status import run_states
from rldsl.store.metrics import MetricsWriter
from rldsl.store.notes import Notes, parse_tags, read_notes, write_notes
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import COLUMNS, row
from tests.project import Project

WIDE = (150, 40)


def table(driver: Driver) -> TreeTable:
    return driver.app.screen.table


def labels(driver: Driver, depth: int = 0) -> list[str]:
    return [row.label for row in table(driver).rows if row.depth == depth]


def test_numeric_and_setting_filters_work_as_they_are_typed(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        for query, sessions in (
            ("return>400", 2),
            ("return>400 or status:failed", 3),
            ("clip=0.1", 2),
            ("agent.clip>=0.2 algo:ppo", 10),
            ("entropy<1 /clips$/", 4),
            ("age<1h", 14),
            ("-age<1h", 0),
        ):
            driver.app.screen.query_one(Input).value = query
            await driver.settle()
            assert len(driver.app.session_tree.matched) == sessions, query
        driver.app.screen.query_one(Input).value = "gama>0.9"
        await driver.settle()
        assert "no session has a gama; did you mean gamma" in driver.text

    drive(sample.runs, scenario, size=WIDE)


def test_filters_are_saved_and_picked(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("S")
        assert not driver.app.saved_filters
        await driver.press("F", "slash", *"status:failed", "enter", "S", *"broken", "enter")
        assert driver.app.saved_filters == {"broken": "status:failed"}
        await driver.press("escape")
        assert len(driver.app.session_tree.matched) == 14
        await driver.press("F", "enter")
        assert len(driver.app.session_tree.matched) == 1
        assert [one.title for one in driver.app.screen.commands()] == ["Filter: broken"]

    drive(sample.runs, scenario)


def test_columns_are_chosen_among_settings_and_metrics(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("C")
        assert "agent.clip" in driver.text and "entropy" in driver.text
        names = driver.app.screen.names
        for name in ("agent.clip", "entropy"):
            driver.app.screen.query_one("SelectionList").select(name)
        for name in ("backend", "frames", "fps", "left"):
            driver.app.screen.query_one("SelectionList").deselect(name)
        await driver.press("g")
        assert "▐X▌ state" in driver.text and "▐ ▌ backend" in driver.text, "not by colour alone"
        await driver.press("enter")
        assert [name for name in names if name in driver.app.columns][-2:] == ["agent.clip", "entropy"]
        header = driver.text.splitlines()[1]
        assert "agent.clip" in header and "entropy" in header and "backend" not in header
        assert "0.1" in driver.line("clip=0.1") and "0.6" in driver.line("clip=0.1")
        await driver.press("C", "escape")
        assert "agent.clip" in driver.app.columns

    drive(sample.runs, scenario, size=WIDE)


def test_a_click_on_a_header_sorts(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        header = driver.text.splitlines()[1]
        await driver.pilot.click(TreeTable, offset=(header.index("return"), 0))
        await driver.settle()
        assert driver.app.session_tree.order == "return" and "return▼" in driver.text
        assert labels(driver)[0] == "cartpole/clips"
        await driver.pilot.click(TreeTable, offset=(header.index("return"), 0))
        await driver.settle()
        assert driver.app.session_tree.reverse and "return▲" in driver.text
        await driver.pilot.click(TreeTable, offset=(header.index("frames"), 0))
        await driver.settle()
        assert driver.app.session_tree.order == "frame", "any value can be the order"
        await driver.press("o")
        assert driver.app.session_tree.order == "name"

    drive(sample.runs, scenario, size=WIDE)


def test_sparklines(sample: SampleRuns, tmp_path: Path) -> None:
    assert sparkline([], 10) == ""
    assert sparkline([1.0], 10) == BLOCKS[0]
    assert sparkline([0.0, 1.0, 2.0, 3.0], 4) == "▁▃▆█"
    assert sparkline([-1e308, 1e308], 4) == "▁█"
    assert len(sparkline([float(number) for number in range(100)], 10)) == 10
    writer = MetricsWriter(tmp_path / "metrics.csv", COLUMNS)
    for frame in range(1, 1000):
        writer.write(row(frame, float(frame)))
    values = sample_metric(tmp_path / "metrics.csv", "episode_return")
    assert values == sorted(values) and values[0] == 1 and values[-1] == 999 and len(values) > 10
    assert sample_metric(sample.alive.metrics, "episode_return") == [45.0, 90.0], "of a short file, every point"
    assert sample_metric(tmp_path / "metrics.csv", "nothing") == sample_metric(tmp_path / "none.csv", "x") == []

    async def scenario(driver: Driver) -> None:
        driver.app.update_trends()
        await driver.settle()
        assert "▁" in driver.text and "█" in driver.text

    drive(sample.runs, scenario, size=WIDE)


def test_tags_and_notes(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.done[0]), sample.path(sample.done[1])}
        await driver.press("T", *"baseline, good", "enter")
        await driver.press("N", *"rerun it", "enter")
        assert read_notes(sample.done[0].path) == read_notes(sample.done[1].path)
        await driver.refresh()
        driver.app.screen.query_one(Input).value = "tag:baseline note:rerun"
        await driver.settle()
        assert len(driver.app.session_tree.matched) == 2
        await driver.press("j", "j")
        assert "#baseline #good; rerun it" in driver.text
        await driver.press("T")
        assert driver.app.screen.query_one(Input).value == "baseline good", "the present ones can be edited"
        await driver.press("escape")

    drive(sample.runs, scenario, size=WIDE)
    assert read_notes(sample.done[0].path) == Notes(("baseline", "good"), "rerun it")
    states = {state.session: state for state in run_states(sample.runs)}
    assert states[sample.done[0].id].note == "#baseline #good; rerun it"
    assert states[sample.done[0].id].data()["tags"] == ("baseline", "good")


def test_notes_of_another_hand(tmp_path: Path) -> None:
    assert parse_tags("#a, b  a c!d [x]") == ("a", "b", "cd", "x")
    for text in ("[]", "nonsense", '{"tags": 3, "note": []}', '{"tags": [1, "#ok"], "note": "' + "x" * 9999 + '"}'):
        (tmp_path / "notes.json").write_text(text)
        assert len(read_notes(tmp_path).text) <= 500
    assert read_notes(tmp_path).tags == ("ok",)
    write_notes(tmp_path, Notes(("a",), "b"))
    assert json.loads((tmp_path / "notes.json").read_text()) == {"tags": ["a"], "note": "b"}
    assert [path.name for path in tmp_path.iterdir()] == ["notes.json"]


def test_list_shows_tags_and_notes(project: Project, sample: SampleRuns) -> None:
    write_notes(sample.done[0].path, Notes(("baseline",), "the good one"))
    shown = project.rldsl("list", "--runs", str(sample.runs))
    assert "#baseline; the good one" in shown.stdout


def test_the_view_is_remembered(sample: SampleRuns, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "watch.json"

    async def change(driver: Driver) -> None:
        await driver.press("j", "space", "slash", *"status:done or status:failed", "enter", "ctrl+t", "B", "o", "E")
        driver.app.saved_filters["mine"] = "return>3"
        driver.app.columns = ["state", "return", "entropy"]
        await driver.press("2", "e", "v", "1")

    async def check(driver: Driver) -> None:
        app = driver.app
        assert (app.theme, app.safe_colours, app.show_events) == ("rldsl-light", True, True)
        assert app.columns == ["state", "return", "entropy"] and "entropy" in driver.text.splitlines()[1]
        assert app.saved_filters == {"mine": "return>3"} and app.session_tree.order == "state"
        assert app.filter_text == "status:done or status:failed" and len(app.session_tree.matched) == 11
        assert len(app.selected) == 1
        await driver.press("2")
        assert app.screen.view.smoothing == 0.6 and app.screen.grid

    drive(sample.runs, change, settings=kept)
    drive(sample.runs, check, settings=kept)


def test_damaged_settings_are_replaced_by_the_usual_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "watch.json"
    assert load_settings(None) == load_settings(path) == Settings()
    for text in ("[", "[]", '{"theme": 3, "columns": [1], "filters": {"a": 1}, "runs": {"x": 3}}'):
        path.write_text(text)
        assert load_settings(path) == Settings()
    settings = Settings(theme="rldsl-light")
    for number in range(60):
        settings.keep_view(tmp_path / str(number), RunsView(filter=str(number)))
    save_settings(path, settings)
    assert load_settings(path).view(tmp_path / "59").filter == "59"
    assert len(load_settings(path).runs) == 50
    save_settings(Path("/proc/nothing/watch.json"), settings)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert settings_path() == Path("/state/rldsl/watch.json")
