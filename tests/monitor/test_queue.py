"""The queues: parsed, joined with sessions, polled rarely; errors become notes."""

from __future__ import annotations

import stat
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rldsl import Slurm
from rldsl.launch.job_records import JobRecord, write_records
from rldsl.monitor import queue
from rldsl.monitor.queue import (
    POLL_SECONDS,
    Queue,
    QueueRow,
    available_sources,
    parse_dstack,
    parse_squeue,
    slurm,
    spent_so_far,
    with_sessions,
)
from rldsl.monitor.session_index import SessionIndex
from tests.monitor.conftest import SampleRuns
from tests.monitor.drive import Driver, drive
from tests.monitor.sample_sessions import append_events

SQUEUE = "4711_0|RUNNING|None|ppo|1:02|node1\n4712|PENDING|Priority|sac|0:00|\nnonsense\n"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a fake `squeue`, which a test writes."""
    monkeypatch.setenv("PATH", str(tmp_path))  # hides a real squeue
    return tmp_path / "squeue"


def write(command: Path, text: str) -> None:
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)


def test_parse_squeue() -> None:
    assert parse_squeue(SQUEUE) == [
        QueueRow("slurm", "4711_0", "running", "on node1", "ppo", "1:02"),
        QueueRow("slurm", "4712", "pending", "Priority", "sac", "0:00"),
    ]


def test_squeue_is_polled_if_it_is_installed(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSTACK_SERVER_URL", raising=False)
    assert "SLURM" not in available_sources()
    write(command, f"printf '{SQUEUE}'".replace("\n", "\\n"))
    assert list(available_sources()) == ["SLURM"]
    assert [row.id for row in Queue().poll().rows] == ["4711_0", "4712"]


def test_a_queue_that_times_out_becomes_a_note(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "TIMEOUT", 0.2)
    write(command, "exec /bin/sleep 20")
    report = Queue({"SLURM": slurm}).poll()
    assert report.notes == ["SLURM does not answer: timed out after 0 seconds"]
    assert report.rows == []


def test_a_queue_that_fails_becomes_a_note(command: Path) -> None:
    write(command, "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    (note,) = Queue({"SLURM": slurm}).poll().notes
    assert note == "SLURM does not answer: slurm_load_jobs error: Unable to contact slurm controller"


def test_a_queue_is_polled_at_most_every_half_minute() -> None:
    polls: list[float] = []
    now = [0.0]
    queue = Queue({"SLURM": lambda: polls.append(now[0]) or []}, clock=lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        queue.poll()
    assert polls == [0.0, POLL_SECONDS, 2 * POLL_SECONDS, 3 * POLL_SECONDS]


def test_two_threads_do_not_poll_at_the_same_time() -> None:
    polling, release = threading.Event(), threading.Event()
    polls: list[int] = []

    def slow() -> list[QueueRow]:
        polls.append(1)
        polling.set()
        release.wait(10)
        return []

    queue = Queue({"SLURM": slow})
    thread = threading.Thread(target=queue.poll)
    thread.start()
    polling.wait(10)
    assert queue.poll().polled_at is None, "the report from before"
    release.set()
    thread.join()
    assert polls == [1]


def test_parse_dstack() -> None:
    runs = [{"run_spec": {"run_name": "ppo-1"}, "status": "running"}, {"id": "x", "status": "failed"}, 3]
    assert parse_dstack(runs) == [
        QueueRow("dstack", "ppo-1", "running", "", "ppo-1"),
        QueueRow("dstack", "x", "failed", "", "x"),
    ]
    assert parse_dstack({"detail": "no"}) == []
    machine = {"latest_job_submission": {"job_provisioning_data": {"price": 0.5}}, "cost": 3.25}
    (running, ended) = parse_dstack([{"id": "x", "status": one, **machine} for one in ("running", "done")])
    assert (running.cost, ended.cost) == ("$3.25, $0.50/h", "$3.25")


def test_dstack_is_polled_over_http_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, str]] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append((self.path, self.headers["Authorization"]))
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'[{"run_spec": {"run_name": "ppo-1"}, "status": "running"}]')

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DSTACK_SERVER_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("DSTACK_TOKEN", "sesame")
    assert "dstack" in available_sources()
    assert [row.id for row in queue.dstack()] == ["ppo-1"]
    assert requests == [("/api/runs/list", "Bearer sesame")]
    server.shutdown()


def test_what_jobs_have_used_is_shown_in_the_words_of_status(sample: SampleRuns, command: Path) -> None:
    write(command, f"printf '{SQUEUE}'".replace("\n", "\\n"))
    write(command.with_name("sacct"), "echo '4712|7200|1800|billing=4,gres/gpu=2'")
    ids = (sample.stopped.id, sample.new.id)
    write_records(sample.runs, [JobRecord("slurm", "4712", ids, "s", Slurm().data())])
    assert spent_so_far(sample.runs / "none") == []

    async def scenario(driver: Driver) -> None:
        await driver.press("6")
        await driver.until(lambda: "used so far: 2.00 core-hours, 1.00 GPU-hours; 2 jobs" in driver.text)

    drive(sample.runs, scenario, queue=Queue({"SLURM": slurm}, runs=sample.runs))


def test_jobs_are_joined_with_sessions(sample: SampleRuns) -> None:
    append_events(sample.new, ("submitted", {"place": "slurm", "job_id": "4711"}))
    append_events(sample.stopped, ("submitted", {"place": "slurm", "job_id": "4712"}))
    sessions = {session.path: session for session in SessionIndex(sample.runs).refresh().updated}
    first, second = with_sessions(parse_squeue(SQUEUE), sessions)
    assert first.sessions == (sample.new.id,), "a task of a job array"
    assert second.sessions == (sample.stopped.id,)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (subprocess.TimeoutExpired("squeue", 10), "timed out after 10 seconds"),
        (subprocess.CalledProcessError(3, "squeue"), "exit code 3"),
        (OSError(), "OSError"),
    ],
)
def test_the_reason_for_an_error(error: Exception, reason: str) -> None:
    assert queue._reason_for(error) == reason
