"""Alerts: failed, diverging, stalled, target reached, search finished; announced in every way."""

from __future__ import annotations

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rldsl.monitor.alerts import Alert, AlertTracker
from rldsl.monitor.notifications import desktop_notification
from rldsl.monitor.session_index import SessionIndex
from rldsl.monitor.snapshot import SessionSnapshot, condition_of
from rldsl.store.metrics import MetricsWriter
from rldsl.store.session_dir import GONE
from rldsl.store.session_state import SessionState
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import COLUMNS, append_events, row
from tests.monitor.terminal import Terminal
from tests.monitor.test_search_screen import write
from tests.search.recorded import asha, record


@pytest.fixture
def alive(sample: SampleRuns) -> SessionSnapshot:
    index = SessionIndex(sample.runs)
    return next(one for one in index.refresh().updated if one.live)


def with_return(session: SessionSnapshot, value: float, frame: int = 50_000, **metrics: float) -> SessionSnapshot:
    status = replace(session.status, episode_return=value, frame=frame)
    return replace(session, status=status, row={"episode_return": value, **metrics})


def kinds(alerts: list[Alert]) -> list[str]:
    return [alert.kind for alert in alerts]


def test_a_collapse_is_half_of_the_gain_after_a_fifth_of_the_budget(alive: SessionSnapshot) -> None:
    tracker = AlertTracker(lambda: 0.0)
    tracker.learn(alive.path, [10.0, 60.0, 110.0, 90.0])
    before = with_return(alive, 90.0)
    assert not tracker.observe(before, alive)
    assert not tracker.observe(with_return(alive, 61.0), before), "110 -> 61 is less than half of 100"
    assert not tracker.observe(with_return(alive, 50.0, frame=19_000), before), "too early"
    (alert,) = tracker.observe(with_return(alive, 50.0), before)
    assert (alert.kind, alert.text) == ("diverging", "return fell from 110 to 50")
    assert not tracker.observe(with_return(alive, 49.0), before), "announced once"
    assert tracker.is_problem(alive)
    tracker.observe(with_return(alive, 100.0), before)
    assert not tracker.is_problem(alive), "it has recovered"


def test_small_gains_are_noise(alive: SessionSnapshot) -> None:
    tracker = AlertTracker(lambda: 0.0)
    tracker.learn(alive.path, [-200.0, -195.0])
    assert not tracker.observe(with_return(alive, -201.0), alive)


def test_nan_and_infinity_are_divergence(alive: SessionSnapshot) -> None:
    for value in (float("nan"), float("inf")):
        tracker = AlertTracker(lambda: 0.0)
        (alert,) = tracker.observe(with_return(alive, 1.0, policy_loss=value), alive)
        assert alert.text == f"policy_loss is {value}"


def test_the_target_is_announced_once(alive: SessionSnapshot) -> None:
    tracker = AlertTracker(lambda: 0.0)
    assert kinds(tracker.observe(with_return(alive, 451.0), alive)) == ["target reached"]
    assert not tracker.observe(with_return(alive, 470.0), alive)
    assert not AlertTracker(lambda: 0.0).observe(with_return(alive, 451.0), None), "it was so from the beginning"


@pytest.mark.parametrize(
    ("state", "silent", "interval", "condition"),
    [
        (SessionState(state="running", status="started"), 599, 0, "running"),
        (SessionState(state="running", status="started"), 601, 0, "stalled"),
        (SessionState(state="running", status="started"), 601, 90, "running"),
        (SessionState(state="running", status="started"), 901, 90, "stalled"),
        (SessionState(state="running", status="started", compiling_since=1.0), 5000, 0, "compiling"),
        (SessionState(state="resume", status="started"), 5, 0, "killed"),
        (SessionState(state="resume", status="started", reason=GONE), 5, 0, "killed"),
        (SessionState(state="resume", status="crashed", reason="killed by SIGKILL"), 5, 0, "killed"),
        (SessionState(state="resume", status="crashed", reason="exit 1"), 5, 0, "crashed"),
        (SessionState(state="resume", status="stopped"), 5, 0, "resume"),
        (SessionState(state="done", status="done"), 5000, 0, "done"),
        (SessionState(state="hibernating"), 5000, 0, "hibernating"),  # type: ignore[arg-type]
    ],
)
def test_conditions(state: SessionState, silent: float, interval: float, condition: str) -> None:
    assert condition_of(state, 1000.0, interval, 1000.0 + silent) == condition


def test_events_problems_and_the_pane(sample: SampleRuns) -> None:
    async def scenario(driver: Driver) -> None:
        rung: list[str] = []
        driver.app.bell = lambda: rung.append("bell")  # type: ignore[method-assign]
        driver.app.write_terminal = rung.append  # type: ignore[method-assign]
        await driver.press("E")
        assert "Events: none yet" in driver.text
        MetricsWriter(sample.alive.metrics, COLUMNS).write(row(60_000, 460.0))
        await driver.refresh()
        append_events(sample.alive, ("failed", {"frame": 60_000, "reason": "it broke"}))
        sample.alive.alive.unlink()
        await driver.refresh()
        assert kinds(list(driver.app.alerts)) == ["target reached", "failed"]
        assert "Events (2)" in driver.text and "failed          cartpole/ppo" in driver.line("it broke")
        assert rung == ["bell", rung[1], "bell", rung[3]]
        assert rung[3].startswith("\x1b]9;cartpole/ppo ") and rung[3].endswith("failed (it broke)\x07")
        await driver.press("2", "exclamation_mark")
        first = driver.app.screen.table.current_row.key
        await driver.press("exclamation_mark")
        second = driver.app.screen.table.current_row.key
        assert {first, second} == {sample.path(sample.alive), sample.path(sample.failed)}
        await driver.press("slash", *"status:done", "enter", "exclamation_mark")
        assert driver.app.screen.table.current_row.key == first, "a filter does not hide problems"
        await driver.press("E")
        assert "Events (2)" not in driver.text

    drive(sample.runs, scenario)


def test_a_search_that_finishes_is_announced(tmp_path: Path) -> None:
    directory = write(tmp_path, record(asha(3)), 3)

    async def scenario(driver: Driver) -> None:
        with directory.claim():
            await driver.refresh()
            assert not driver.app.alerts
        await driver.refresh()
        assert kinds(list(driver.app.alerts)) == ["search finished"]

    drive(tmp_path, scenario)


def test_without_problems_the_key_says_so(tmp_path: Path) -> None:
    async def scenario(driver: Driver) -> None:
        await driver.press("exclamation_mark")
        assert "no session has a problem" in " ".join(str(one.message) for one in driver.app._notifications)

    drive(tmp_path, scenario)


def test_a_notification_has_no_control_characters() -> None:
    assert desktop_notification("a\x1b]0;x\x07b\n") == "\x1b]9;a ]0;x b \x07"


def test_the_real_program_notifies(sample: SampleRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bell, OSC 9 and `--notify`, in a real terminal and with a real server."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    received: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        terminal = Terminal("watch", sample.runs, "--notify", f"http://127.0.0.1:{server.server_port}/")
        try:
            terminal.wait(lambda text: "14 sessions" in text)
            append_events(sample.alive, ("failed", {"frame": 60_000, "reason": "it broke"}))
            sample.alive.alive.unlink()
            terminal.wait(lambda text: received and "it broke" in text)
            assert b"\x1b]9;cartpole/ppo " in terminal.raw and b"\x07" in terminal.raw
            terminal.press("q")
            assert terminal.process.wait(20) == 0
        finally:
            terminal.close()
            server.shutdown()
    assert received[0]["text"].endswith("failed (it broke)")
    assert (tmp_path / "state" / "rldsl" / "watch.json").exists()
