"""The screens Curves, Log, Detail, Search, Queue and Machine, the help and the command palette."""

from __future__ import annotations

import pytest

from rldsl.monitor.machine import Gpu, Usage, parse_gpu_processes, parse_gpus, read_usage
from rldsl.monitor.queue import Queue, QueueRow
from rldsl.monitor.screens.curves import CurvesScreen
from rldsl.monitor.screens.dialogs import HELP, Help
from rldsl.monitor.screens.log import LogScreen
from rldsl.monitor.screens.machine import MachineScreen
from rldsl.monitor.widgets.bars import SCREENS, TopBar
from rldsl.monitor.widgets.chart import Chart
from rldsl.store.metrics import MetricsWriter
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import COLUMNS, append_events, row


def curves(driver: Driver) -> CurvesScreen:
    assert isinstance(driver.app.screen, CurvesScreen)
    return driver.app.screen


async def go_to(driver: Driver, words: str) -> None:
    """Puts the cursor on the first row with this label."""
    table = driver.app.screen.table
    table.cursor = next(index for index, row in enumerate(table.rows) if row.label == words)
    await driver.settle()


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_every_screen_opens_with_its_key_and_closes_with_escape(sample: SampleRuns, size: tuple[int, int]) -> None:
    async def scenario(driver: Driver) -> None:
        for number, name in enumerate(SCREENS, 1):
            await driver.press(str(number))
            assert driver.app.current_mode == name
            assert max(map(len, driver.text.splitlines())) <= size[0]
            await driver.press("escape")
            assert driver.app.current_mode == "runs"
        await driver.pilot.click(TopBar, offset=(13, 0))
        await driver.settle()
        assert driver.app.current_mode == "curves"

    drive(sample.runs, scenario, size=size)


def test_curves_of_the_trials_under_the_cursor(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await go_to(driver, "cartpole/clips")
        await driver.press("2")
        assert [line.label for line in curves(driver).query_one(Chart).data.lines] == [
            "cartpole/clips clip=0.1",
            "cartpole/clips clip=0.3",
        ]
        assert "×2 cartpole/clips clip=0.1" in driver.text
        assert "450 target" in driver.text
        assert "╌╌╌╌" in driver.text
        assert any(0x2800 < ord(letter) < 0x2900 for letter in driver.text), "braille dots"

    drive(sample.runs, scenario)


def test_the_keys_of_the_curves(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await go_to(driver, "cartpole/clips")
        await driver.press("2")
        screen, chart = curves(driver), driver.app.screen.query_one(Chart)
        await driver.press("s")
        assert len(chart.data.lines) == 4
        await driver.press("m")
        assert screen.metric == "episode_return_ma"
        await driver.press("M")
        assert screen.metric == "episode_return"
        await driver.press("L")
        assert chart.data.log_y
        await driver.press("x")
        assert screen.view.axis == "seconds"
        assert "against seconds, log axis" in driver.text
        await driver.press("plus", "l")
        assert chart.x_range is not None
        x0, x1 = chart.x_range
        await driver.press("minus", "h")
        assert chart.x_range[1] - chart.x_range[0] > x1 - x0
        await driver.press("0")
        assert chart.x_range is None

    drive(sample.runs, scenario)


def test_selected_sessions_are_overlaid_and_grow(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive), sample.path(sample.done[0])}
        await driver.press("2")
        chart = driver.app.screen.query_one(Chart)
        assert len(chart.data.lines) == 2
        MetricsWriter(sample.alive.metrics, COLUMNS).write(row(90_000, 333.0))
        await driver.refresh()
        await driver.settle()
        assert {line.last for line in chart.data.lines} == {333.0, 300.0}

    drive(sample.runs, scenario)


def test_a_chart_without_log_points_says_so(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.new)}
        await driver.press("2")
        assert "no episode_return yet" in driver.text

    drive(sample.runs, scenario)


def test_the_log_is_followed_and_searched(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.failed)}
        await driver.press("3")
        assert "Traceback: it broke" in driver.text
        assert "following" in driver.text
        with sample.failed.log.open("a") as log:
            log.write("and more\n")
        await driver.until(lambda: "and more" in driver.text)
        await driver.press("g")
        assert "line 0" in driver.text
        assert "not following" in driver.text
        await driver.press("f")
        assert "and more" in driver.text
        await driver.press("slash", *"line 29", "enter")
        assert "11 lines with 'line 29'" in driver.text
        screen = driver.app.screen
        assert isinstance(screen, LogScreen)
        assert screen.view.match == 299
        await driver.press("n")
        assert screen.view.match == 29
        await driver.press("N")
        assert screen.view.match == 299
        await driver.press("escape", "escape")
        assert driver.app.current_mode == "runs"

    drive(sample.runs, scenario)


def test_detail_shows_spec_provenance_and_journal(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await go_to(driver, "clip=0.1")
        await driver.press("j", "enter")
        assert driver.app.current_mode == "detail"
        assert driver.line("agent.clip").lstrip().startswith("◆ agent.clip")
        assert not driver.line("agent.gamma").lstrip().startswith("◆")
        for words in ("Spec", "Provenance", "none yet", "Journal", "started", "checkpoint", "done"):
            assert words in driver.text
        assert "differs between the trials" not in driver.text
        await driver.press("G")
        assert "differs between the trials" in driver.text
        await driver.press("g", "j", "k")
        assert "Spec" in driver.text

    drive(sample.runs, scenario, size=(170, 40))


def test_without_a_search_the_screen_says_so(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("5")
        assert "no search yet" in driver.text

    drive(sample.runs / "nothing", scenario)


def test_without_a_queue_the_screen_says_so(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("6")
        assert "no queue:" in driver.text

    drive(sample.runs, scenario)


def test_the_queue_shows_the_sessions_of_each_job(sample: SampleRuns) -> None:
    append_events(sample.new, ("submitted", {"place": "slurm", "job_id": "4711"}))
    rows = [
        QueueRow("slurm", "4711", "pending", "Priority", "ppo"),
        QueueRow("slurm", "9", "running", "on n1", "other"),
    ]

    async def scenario(driver: Driver) -> None:
        await driver.press("6")
        await driver.until(lambda: "Priority" in driver.text)
        assert sample.new.id in driver.line("4711")
        assert "2 jobs" in driver.text
        await driver.press("j", "k", "enter")
        assert driver.app.current_mode == "detail"
        assert [one.status.session for one in driver.app.chosen()] == [sample.new.id]

    drive(sample.runs, scenario, queue=Queue({"SLURM": lambda: rows}))


def test_the_machine_screen_shows_the_usage(sample: SampleRuns) -> None:
    gpu = Gpu("L4", 0.5, 2**30, 2**34, 55.0, 72.0, 61.0)
    usage = Usage((0.25, 1.0), (1.0, 2.0, 3.0), (2**30, 2**33), (0, 0), (2**40, 2**41), (gpu,), 48.0)

    async def scenario(driver: Driver) -> None:
        driver.app.read_usage = lambda runs: usage
        driver.app.sample_machine()
        await driver.settle()
        await driver.press("7")
        await driver.settle()
        assert isinstance(driver.app.screen, MachineScreen)
        for words in (" 25%", "100%", "1 GiB of 8 GiB", "L4", "1 TiB of 2 TiB", "load 1.00 2.00 3.00"):
            assert words in driver.text
        assert "55/72 W  61 °C" in driver.text and "CPU  48 °C" in driver.text
        assert len(driver.app.machine.cpu) >= 2, "it was measured while the screen was hidden"
        assert sample.alive.id in driver.line(f" {sample.process.pid} "), "the process of a session"
        assert "cores" in driver.line(f" {sample.process.pid} ")
        assert [one.path for one in driver.app.chosen()] == [sample.path(sample.alive)]

    drive(sample.runs, scenario, size=(120, 45))


def test_many_cores_are_shown_as_blocks(sample: SampleRuns) -> None:
    usage = Usage(tuple(index / 127 for index in range(128)), (1.0,), (1, 2))

    async def scenario(driver: Driver) -> None:
        driver.app.read_usage = lambda runs: usage
        await driver.press("7")
        await driver.settle()
        assert "128 cores" in driver.text and "0-31" in driver.text and "core 5" not in driver.text
        assert "▁" in driver.line("0-31") and "█" in driver.line("96-127")

    drive(sample.runs, scenario, size=(80, 24))


def test_usage_of_this_machine(sample: SampleRuns) -> None:
    usage = read_usage(sample.runs)
    assert usage.cores
    assert 0 < usage.memory[0] < usage.memory[1]
    assert 0 < usage.disk[0] <= usage.disk[1]
    assert read_usage(sample.runs / "gone").disk is None


def test_unknown_values_of_nvidia_smi_count_as_zero() -> None:
    assert parse_gpus("NVIDIA L4, 50, 1024, 23034\nold, [N/A], 1, 2\nnonsense\n") == [
        Gpu("NVIDIA L4", 0.5, 2**30, 23034 * 2**20),
        Gpu("old", 0.0, 2**20, 2 * 2**20),
    ]
    (gpu,) = parse_gpus("NVIDIA L4, 50, 1024, 23034, 55.5, [N/A], 61")
    assert (gpu.power, gpu.power_limit, gpu.temperature) == (55.5, None, 61.0)
    assert parse_gpu_processes("12, 100\n12, 28\n7, [N/A]\nnonsense\n") == {12: 128 * 2**20, 7: 0}


def test_help_lists_every_key(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("question_mark")
        assert isinstance(driver.app.screen, Help)
        assert "Everywhere" in driver.text
        await driver.press("j", "k", "escape")
        assert driver.app.current_mode == "runs"
        assert not isinstance(driver.app.screen, Help)

    drive(sample.runs, scenario)
    for key in ("c ", "r ", "d ", "t ", "y ", "?", "q ", "/", "o O", "space", "enter", "m M", "f ", "ctrl+p", "ctrl+t"):
        assert f"  {key}" in HELP


def test_the_palette_finds_orders_and_metrics(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("ctrl+p")
        await driver.pilot.press(*"sort by return")
        await driver.until(lambda: "Runs by return" in driver.text)
        await driver.pilot.press("enter")
        await driver.until(lambda: driver.app.session_tree.order == "return")
        await driver.press("2", "ctrl+p")
        await driver.pilot.press(*"curve of entropy")
        await driver.until(lambda: "curve of entropy" in driver.text.lower().replace("curve of entropy", "", 1))
        await driver.pilot.press("enter")
        await driver.until(lambda: curves(driver).metric == "entropy")

    drive(sample.runs, scenario)
