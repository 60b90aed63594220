"""Commands apply to what the screen shows as chosen and to nothing else; nothing stops by accident."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from textual.widgets import Footer, Input

from rldsl import uniform
from rldsl.launch.stop import ask_to_stop
from rldsl.monitor import control
from rldsl.monitor.control import Outcome
from rldsl.monitor.queue import Queue, QueueRow
from rldsl.monitor.screens.dialogs import Confirm
from rldsl.store.notes import Notes, write_notes
from rldsl.store.session_dir import SessionDir
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import (
    append_events,
    cartpole,
    finished_trials,
    make_search,
    running,
    sessions_of,
    training,
)


def notifications(driver: Driver) -> str:
    return " ".join(str(one.message) for one in driver.app._notifications)


def paths(driver: Driver) -> set[str]:
    return {session.path for session in driver.app.chosen()}


def question(driver: Driver) -> Confirm:
    assert isinstance(driver.app.screen, Confirm)
    return driver.app.screen


def test_on_search_the_trial_under_its_cursor_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor of Runs is on other sessions, which run as well."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    search = cartpole().search(gamma=uniform(0.9, 0.99)).random(trials=3)
    make_search(tmp_path, search, finished_trials(search, (105.0, 125.0, 145.0)))
    with ExitStack() as stack:
        searched = [stack.enter_context(running(tmp_path, one)) for one in sessions_of(search)]
        other = stack.enter_context(running(tmp_path, sessions_of(cartpole("a-first").seeds(1))[0]))

        async def scenario(driver: Driver) -> None:
            assert paths(driver) == {str(other.path.relative_to(tmp_path))}
            await driver.press("5", "j", "c")
            trial = searched[2].trial  # two seeds each, best first: the second row is the second trial
            stopped = [one.id for one in searched if one.trial == trial]
            assert all(id in question(driver).details.partition("In the same")[0] for id in stopped)
            assert len(stopped) == 2 and question(driver).question == "Stop 2 sessions?"
            assert other.id not in question(driver).details.partition("In the same")[0]
            await driver.press("n", "space")
            assert len(driver.app.selected) == 2
            assert "2 selected" in driver.text and "◆" in driver.text
            await driver.press("1")
            assert len(paths(driver)) == 2, "the selection is the same on Runs"

        drive(tmp_path, scenario, size=(140, 40))


def test_on_queue_the_job_under_its_cursor_is_meant(sample: SampleRuns) -> None:
    append_events(sample.new, ("submitted", {"place": "slurm", "job_id": "4711"}))
    append_events(sample.stopped, ("submitted", {"place": "slurm", "job_id": "9"}))
    rows = [QueueRow("slurm", "4711", "pending", "", "a"), QueueRow("slurm", "9", "pending", "", "b")]

    async def scenario(driver: Driver) -> None:
        await driver.press("6")
        await driver.until(lambda: "4711" in driver.text)
        assert paths(driver) == {sample.path(sample.new)}
        await driver.press("j")
        assert paths(driver) == {sample.path(sample.stopped)}
        await driver.press("c")
        assert sample.stopped.id in question(driver).details
        assert sample.new.id not in question(driver).details
        await driver.press("escape", "space")
        assert driver.app.selected == {sample.path(sample.stopped)}

    drive(sample.runs, scenario, queue=Queue({"SLURM": lambda: rows}))


def test_the_cursor_of_the_queue_stays_on_its_job(sample: SampleRuns) -> None:
    rows = [QueueRow("slurm", str(number), "pending", "", "a") for number in range(3)]

    async def scenario(driver: Driver) -> None:
        await driver.press("6", "j")
        assert driver.app.screen.table.current_key == "slurm 1"
        rows.insert(0, QueueRow("slurm", "0.5", "pending", "", "new"))
        driver.app.queue.clock = lambda: 1e9
        await driver.press("1", "6")
        await driver.until(lambda: "0.5" in driver.text)
        assert driver.app.screen.table.current_key == "slurm 1"

    drive(sample.runs, scenario, queue=Queue({"SLURM": lambda: list(rows)}))


def test_enter_never_confirms(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive)}
        await driver.press("c", "enter", "enter", "space")
        assert isinstance(driver.app.screen, Confirm) and not sample.process.asked.is_set()
        await driver.press("y")
        assert sample.process.asked.wait(30)

    drive(sample.runs, scenario)
    assert sample.process.process.join(30) is None and sample.alive.state() == "resume"


def test_a_key_may_come_before_the_dialog_is_drawn() -> None:
    dialog = Confirm("Stop 1 session?", "")
    dialog.action_scroll(1)
    assert not dialog.is_mounted


def test_what_the_filter_hides_is_left_alone(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive), sample.path(sample.failed)}
        await driver.press("slash", *"status:failed", "enter")
        assert paths(driver) == {sample.path(sample.failed)}
        assert "2 selected (1 of them hidden by the filter" in driver.text
        await driver.press("c")
        assert "none of the chosen sessions is running" in notifications(driver)

    drive(sample.runs, scenario, size=(160, 30))


def test_log_and_detail_act_on_the_session_that_they_show(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(one) for one in (sample.alive, sample.failed, *sample.done)}
        for key in ("3", "4"):
            await driver.press(key)
            (shown,) = driver.app.chosen()
            assert shown.status.session in driver.text
        await driver.press("2")
        assert len(driver.app.chosen()) == 6, "Curves shows all of them"
        await driver.press("7")
        await driver.settle()
        assert paths(driver) == {sample.path(sample.alive)}, "Machine: the sessions of the process under the cursor"

    drive(sample.runs, scenario)


def test_enter_keeps_the_selection(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("space", "enter")
        assert driver.app.current_mode == "detail"
        assert len(driver.app.selected) == 2
        await driver.press("1")
        assert "2 selected" in driver.text

    drive(sample.runs, scenario)


def test_stopping_is_shown_until_the_journal_confirms_it(sample: SampleRuns) -> None:
    sample.process.may_stop.clear()

    async def scenario(driver: Driver) -> None:
        alive = sample.path(sample.alive)
        driver.app.selected = {alive}
        await driver.press("c", "y")
        assert driver.app.sessions[alive].state == "stopping"
        assert "◕ stopping" in driver.text
        append_events(sample.alive, ("checkpoint", {"frame": 20_000}))
        await driver.refresh()
        assert driver.app.sessions[alive].state == "stopping", "it still runs"
        assert sample.process.asked.wait(30)
        sample.process.may_stop.set()
        await driver.refresh_until(lambda: driver.app.sessions[alive].state == "resume")
        assert "◕ stopping" not in driver.text

    drive(sample.runs, scenario)


def test_a_session_that_could_not_be_asked_is_not_shown_as_stopping(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive)}
        await driver.press("c")
        sample.process.kill()
        await driver.press("y")
        assert f"{sample.alive.id} does not run any more" in notifications(driver)
        assert driver.app.sessions[sample.path(sample.alive)].state != "stopping"
        await driver.refresh_until(lambda: driver.app.sessions[sample.path(sample.alive)].state == "killed")

    drive(sample.runs, scenario)


def test_the_sessions_of_a_process_are_asked_once(sample: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[SessionDir] = []
    monkeypatch.setattr(control, "ask_to_stop", lambda one: asked.append(one) or ask_to_stop(one))
    with training(sample.runs, *sessions_of(cartpole("pack").frames(2e5))) as process:
        process.may_stop.clear()

        async def scenario(driver: Driver) -> None:
            driver.app.selected = {sample.path(one) for one in process.directories}
            await driver.press("c", "y")
            assert process.asked.wait(30) and len(asked) == 1
            assert driver.text.count("◕ stopping") == 2

        drive(sample.runs, scenario)
    assert not sample.process.asked.is_set()


def test_a_read_only_monitor_changes_nothing(sample: SampleRuns) -> None:
    before = sorted(sample.runs.rglob("*"))

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive), sample.path(sample.stopped)}
        for screen in "1234":
            await driver.press(screen, "c", "r", "y", "t")
            assert not isinstance(driver.app.screen, Confirm)
        assert "read-only" in notifications(driver)
        assert not driver.app.clipboard

    drive(sample.runs, scenario, read_only=True)
    assert sample.alive.state() == "running" and not sample.process.asked.is_set()
    assert sorted(sample.runs.rglob("*")) == before


def test_the_word_is_stop_everywhere(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.alive)}
        await driver.refresh()
        footer = " ".join(str(key.description) for key in driver.app.screen.query_one(Footer).query("FooterKey"))
        assert "Stop" in footer and "Cancel" not in footer
        await driver.press("c")
        assert "Stop 1 session?" in driver.text

    drive(sample.runs, scenario)


def test_texts_with_markup_are_shown_as_they_are(sample: SampleRuns) -> None:
    """Reasons, notes, logs and errors may contain anything."""
    append_events(sample.failed, ("failed", {"frame": 1000, "reason": "[red]x[/red] [@click=app.quit]q[/]"}))
    write_notes(sample.failed.path, Notes((), "[/] [bold"))
    sample.failed.log.write_text("[/] [green broke\n")
    text = "[red]x[/red] [@click=app.quit]q[/]; [/] [bold"

    async def scenario(driver: Driver) -> None:
        driver.app.selected = {sample.path(sample.failed)}
        await driver.press("j")
        assert text in driver.text
        await driver.press("r")
        assert "[red]x[/red]" in driver.text
        await driver.press("escape", "3")
        assert "[/] [green broke" in driver.text
        await driver.press("4")
        assert text in driver.text
        driver.app._acted(Outcome(["[/] broke [red"], set()), control.Request([], "", ""), "{}")
        for key in "2567":
            await driver.press(key)
        await driver.press("1", "N")
        assert driver.app.screen.query_one(Input).value == "[/] [bold"

    drive(sample.runs, scenario, size=(140, 40))
