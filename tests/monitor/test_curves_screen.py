"""The screen Curves: correct under slow storage and odd values, and its tools: grid, crosshair, smoothing, export."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from rldsl import PPO
from rldsl.monitor.curves import Curve
from rldsl.monitor.screens.curves import CurvesScreen
from rldsl.monitor.widgets.chart import Chart
from rldsl.store.metrics import MetricsWriter
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import COLUMNS, append_events, cartpole, make_done, row, sessions_of


def screen(driver: Driver) -> CurvesScreen:
    assert isinstance(driver.app.screen, CurvesScreen)
    return driver.app.screen


def chart(driver: Driver) -> Chart:
    return driver.app.screen.query_one("#chart", Chart)


async def show(driver: Driver, *sessions: Path | object) -> None:
    driver.app.selected = {str(one.path.relative_to(driver.app.runs)) for one in sessions}  # type: ignore[attr-defined]
    await driver.press("2")


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve trials of an experiment, with a seed each."""
    monkeypatch.setattr("os.fsync", lambda fd: None)
    for number in range(12):
        agent = PPO(gamma=round(0.9 + number / 200, 4))
        make_done(tmp_path, sessions_of(cartpole("many").agent(agent).seeds(1))[0], best=100 + number)
    return tmp_path


def test_one_thread_reads_a_file_however_often_it_is_asked(sample: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    reading: list[str] = []
    most = [0]
    read = Curve._read_lines

    def slow(curve: Curve) -> bytes:
        reading.append(threading.current_thread().name)
        most[0] = max(most[0], len(reading))
        time.sleep(0.05)
        try:
            return read(curve)
        finally:
            reading.pop()

    monkeypatch.setattr(Curve, "_read_lines", slow)

    async def scenario(driver: Driver) -> None:
        await show(driver, *sample.done)
        for _ in range(6):
            screen(driver).refresh_content()
            await driver.pilot.pause(0.02)  # while the thread reads, which takes 0.05 seconds
        await driver.settle()
        assert most[0] == 1
        for line in chart(driver).data.lines:
            assert len(line.x) == 20 and (np.diff(line.x) > 0).all()

    drive(sample.runs, scenario)


def test_while_a_file_is_read_the_screen_says_so(sample: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    read = Curve._read_lines
    monkeypatch.setattr("rldsl.monitor.curve_work.PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr("rldsl.monitor.curves.CHUNK", 300)

    def slow(curve: Curve) -> bytes:
        release.wait(0.1)
        return read(curve)

    monkeypatch.setattr(Curve, "_read_lines", slow)

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.done[0])}
        await driver.pilot.press("2")
        await driver.until(lambda: "reading " in driver.text)
        assert "no episode_return yet" not in driver.text
        release.set()
        await driver.settle()
        assert "reading" not in driver.text

    drive(sample.runs, scenario)


def test_lines_that_do_not_fit_are_on_further_pages(trials: Path) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("2")
        seen: set[str] = set()
        pages = 0
        while pages < 20 and len(seen) < 12:
            seen |= {line.label for line in chart(driver).data.lines}
            assert all(line.label.split()[-1] in driver.text for line in chart(driver).data.lines)
            await driver.press("pagedown")
            pages += 1
        assert len(seen) == 12 and pages == 3
        assert "12 lines" in driver.text and "page 1 of 3" in driver.text
        await driver.press("pageup")
        assert "page 3 of 3" in driver.text

    drive(trials, scenario, size=(80, 24))


def test_colours_stay_with_their_experiment(trials: Path) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("2")
        before = {line.label: line.color for line in chart(driver).data.lines}
        assert len({colour % 8 for colour in before.values()}) == len(before)
        label, colour = list(before.items())[3]
        await driver.press("1")
        driver.app.selected = set(screen_paths(driver, label))
        await driver.press("2")
        (line,) = chart(driver).data.lines
        assert (line.label, line.color) == (label, colour)
        colours = chart(driver)._strips
        await driver.press("B")
        assert driver.app.safe_colours and chart(driver)._strips != colours

    def screen_paths(driver: Driver, label: str) -> list[str]:
        gamma = label.split()[-1]
        rows = driver.app.session_tree.rows(driver.app.sessions, driver.app.index.varied)
        return [one.path for row in rows if row.label.startswith(gamma) for one in row.sessions]

    drive(trials, scenario, size=(120, 40))


def test_what_cannot_be_read_is_listed_with_the_reason(sample: SampleRuns) -> None:
    sample.done[0].metrics.unlink()
    sample.done[0].metrics.mkdir()
    sample.done[1].metrics.write_text("a,b\n1,2\n")
    with sample.done[2].metrics.open("a") as file:
        file.write("nonsense\n")

    async def scenario(driver: Driver) -> None:
        await show(driver, *sample.done)
        assert f"✗ {sample.done[0].id}: metrics.csv cannot be read: Is a directory" in driver.text
        assert f"✗ {sample.done[1].id}: metrics.csv has no column frame" in driver.text
        assert f"✗ {sample.done[2].id}: 1 malformed lines left out" in driver.text
        assert "470" in driver.text

    drive(sample.runs, scenario)


def test_huge_values_and_endless_zooming_do_not_overflow(sample: SampleRuns) -> None:
    writer = MetricsWriter(sample.alive.metrics, COLUMNS)
    for frame, value in ((30_000, 1e308), (40_000, -1e308), (50_000, 5.0), (60_000, float("inf"))):
        writer.write({**row(frame, 1.0), "episode_return": value})

    async def scenario(driver: Driver) -> None:
        await show(driver, sample.alive)
        for keys in (["minus"] * 60, ["plus"] * 80, ["l"] * 30, ["0", "L", "X"], ["minus"] * 20, ["v"]):
            await driver.press(*keys)
            assert "curves" in driver.app.current_mode
        await driver.press("v", "X", "L", "0")
        whole = chart(driver).whole
        await driver.press(*["minus"] * 60)
        x0, x1 = chart(driver).x_range
        assert x1 - x0 <= 2 * (whole.x1 - whole.x0) + 1

    drive(sample.runs, scenario)


def test_the_y_range_fits_the_window(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await show(driver, sample.done[3])
        whole = chart(driver).window
        await driver.press(*["plus"] * 5, "l", "l")
        window = chart(driver).window
        assert window.y1 - window.y0 < (whole.y1 - whole.y0) / 2

    drive(sample.runs, scenario)


def test_the_crosshair_shows_values_and_is_shared_by_all_charts(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await show(driver, sample.done[0])
        await driver.press("i")
        x = screen(driver).crosshair
        assert x == pytest.approx(52_500)
        assert "157.5" in driver.text, "300 * 52,500 / 100,000"
        assert "┊" in driver.text and "52.5k" in driver.text
        await driver.press("full_stop", "full_stop", "comma")
        assert screen(driver).crosshair > x
        await driver.press("v")
        charts = list(screen(driver).query("#charts Chart"))
        assert len(charts) > 3 and {one.crosshair for one in charts} == {screen(driver).crosshair}
        assert "policy_loss  -0.01" in driver.text and "entropy  0.6" in driver.text, "the value in each chart"
        await driver.press("m", "plus")
        assert len({one.x_range for one in screen(driver).query("#charts Chart")}) == 1
        await driver.press("escape")
        assert screen(driver).crosshair is None
        await driver.press("v")
        await driver.pilot.hover("#chart", offset=(60, 5))
        assert screen(driver).crosshair is not None, "the mouse moves it too"

    drive(sample.runs, scenario)


def test_the_mouse_drags_and_zooms(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await show(driver, sample.done[0])
        await driver.press("plus", "plus")
        x0, x1 = chart(driver).x_range
        await driver.pilot.mouse_down("#chart", offset=(80, 5))
        await driver.pilot.hover("#chart", offset=(60, 5))
        await driver.pilot.mouse_up("#chart", offset=(60, 5))
        moved0, moved1 = chart(driver).x_range
        assert moved0 > x0 and moved1 - moved0 == pytest.approx(x1 - x0)
        chart(driver)._zoom(0.8, chart(driver)._share(60))
        await driver.settle()
        assert chart(driver).x_range[1] - chart(driver).x_range[0] == pytest.approx((x1 - x0) * 0.8)

    drive(sample.runs, scenario)


def test_smoothing_is_named_in_the_legend(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await show(driver, sample.done[0])
        assert "EMA" not in driver.text
        last = chart(driver).data.lines[0].last
        for weight in ("0.6", "0.9", "0.97", "0.99"):
            await driver.press("e")
            assert f"smoothed: EMA {weight}" in driver.text
            assert chart(driver).data.lines[0].last < last
        await driver.press("e")
        assert "EMA" not in driver.text and chart(driver).data.lines[0].last == last

    drive(sample.runs, scenario)


def test_axes(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await show(driver, sample.done[0])
        await driver.press("X")
        assert "against frame, log x" in driver.text
        assert chart(driver).data.lines[0].x[-1] == pytest.approx(5.0), "log10 of 100,000 frames"
        assert "10k" in driver.text
        await driver.press("X", "x")
        assert "against seconds" in driver.text and "1m 40s" in driver.text
        await driver.press("x")
        screen(driver).action_log_x()
        screen(driver)._chart.zoom(1.5)
        screen(driver).draw()  # before there are lines for the new axis
        assert "100k" in driver.text
        await driver.settle()
        assert chart(driver).x_range is None, "that of the axis before"
        await driver.press(*["l"] * 3)
        chart(driver).pan(2e3)
        await driver.settle()
        assert driver.app._exception is None

    drive(sample.runs, scenario)


def test_checkpoints_and_resumes_are_marked(sample: SampleRuns) -> None:
    append_events(sample.stopped, ("started", {"frame": 30_000}), ("stopped", {"frame": 40_000}))

    async def scenario(driver: Driver) -> None:
        await show(driver, sample.stopped)
        axis = driver.line("└")
        assert "↻" in axis and "▴" in axis

    drive(sample.runs, scenario)


def test_pinned_curves_stay(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await show(driver, sample.done[0])
        await driver.press("p", "1")
        await show(driver, sample.done[2])
        assert [line.label.split()[-1] for line in chart(driver).data.lines] == ["clip=0.1", "clip=0.3"]
        assert "⚲" in driver.text
        assert [one.path for one in driver.app.chosen()] == [sample.path(sample.done[2])], "commands leave it alone"
        await driver.press("1")
        driver.app.pin([sample.path(sample.done[0])])
        await show(driver, sample.done[2])
        assert len(chart(driver).data.lines) == 1

    drive(sample.runs, scenario)


def test_the_chart_is_saved(sample: SampleRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario(driver: Driver) -> None:
        await show(driver, *sample.done[:2])
        for key in ("p", "s", "c", "c"):
            await driver.press("w", key)
        await driver.press("w", "escape")
        assert driver.app.current_mode == "curves"

    drive(sample.runs, scenario)
    assert (tmp_path / "episode_return.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "episode_return.svg").read_bytes()
    header, *lines = (tmp_path / "episode_return.csv").read_text().splitlines()
    assert header == "line,frame,episode_return,lowest,highest,seeds,smoothing"
    assert lines[-1] == "cartpole/clips clip=0.1,100000.0,320.0,300.0,340.0,2,0.0"
    assert (tmp_path / "episode_return-2.csv").exists(), "nothing is overwritten"
