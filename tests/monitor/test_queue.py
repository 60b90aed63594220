"""What the queues say: parsed, joined with our sessions, asked seldom, and never a reason to end."""

from __future__ import annotations

import stat
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rldsl.monitor import queue
from rldsl.monitor.facts import Index
from rldsl.monitor.queue import EVERY, Queue, QueueRow, joined, parse_dstack, parse_squeue, slurm, sources_here
from tests.monitor.conftest import House
from tests.monitor.sessions import tell

SQUEUE = "4711_0|RUNNING|None|ppo|1:02|node1\n4712|PENDING|Priority|sac|0:00|\nnonsense\n"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `squeue` that a test writes."""
    monkeypatch.setenv("PATH", str(tmp_path))  # the machine may have one of its own
    return tmp_path / "squeue"


def write(command: Path, text: str) -> None:
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)


def test_rows_of_squeue() -> None:
    assert parse_squeue(SQUEUE) == [
        QueueRow("slurm", "4711_0", "running", "on node1", "ppo", "1:02"),
        QueueRow("slurm", "4712", "pending", "Priority", "sac", "0:00"),
    ]


def test_squeue_is_asked_if_it_is_there(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSTACK_SERVER_URL", raising=False)
    assert "SLURM" not in sources_here()
    write(command, f"printf '{SQUEUE}'".replace("\n", "\\n"))
    assert list(sources_here()) == ["SLURM"]
    assert [row.id for row in Queue().ask().rows] == ["4711_0", "4712"]


def test_a_queue_that_does_not_answer_is_a_sentence(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "TIMEOUT", 0.2)
    write(command, "exec /bin/sleep 20")
    answer = Queue({"SLURM": slurm}).ask()
    assert answer.notes == ["SLURM does not answer: nothing came in 0 seconds"]
    assert answer.rows == []


def test_a_queue_that_fails_is_a_sentence(command: Path) -> None:
    write(command, "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    (note,) = Queue({"SLURM": slurm}).ask().notes
    assert note == "SLURM does not answer: slurm_load_jobs error: Unable to contact slurm controller"


def test_it_is_asked_no_more_often_than_every_half_a_minute() -> None:
    asked: list[float] = []
    now = [0.0]
    one = Queue({"SLURM": lambda: asked.append(now[0]) or []}, clock=lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        one.ask()
    assert asked == [0.0, EVERY, 2 * EVERY, 3 * EVERY]


def test_a_question_under_way_is_not_asked_twice() -> None:
    going, release = threading.Event(), threading.Event()
    asked: list[int] = []

    def slow() -> list[QueueRow]:
        asked.append(1)
        going.set()
        release.wait(10)
        return []

    one = Queue({"SLURM": slow})
    thread = threading.Thread(target=one.ask)
    thread.start()
    going.wait(10)
    assert one.ask().asked is None, "the answer that was there"
    release.set()
    thread.join()
    assert asked == [1]


def test_rows_of_dstack() -> None:
    runs = [{"run_spec": {"run_name": "ppo-1"}, "status": "running"}, {"id": "x", "status": "failed"}, 3]
    assert parse_dstack(runs) == [
        QueueRow("dstack", "ppo-1", "running", "", "ppo-1"),
        QueueRow("dstack", "x", "failed", "", "x"),
    ]
    assert parse_dstack({"detail": "no"}) == []


def test_dstack_is_asked_over_http_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.path, self.headers["Authorization"]))
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
    assert "dstack" in sources_here()
    assert [row.id for row in queue.dstack()] == ["ppo-1"]
    assert seen == [("/api/runs/list", "Bearer sesame")]
    server.shutdown()


def test_jobs_are_joined_with_our_sessions(house: House) -> None:
    tell(house.new, ("submitted", {"place": "slurm", "job_id": "4711"}))
    tell(house.stopped, ("submitted", {"place": "slurm", "job_id": "4712"}))
    seen = {one.path: one for one in Index(house.runs).look().seen}
    first, second = joined(parse_squeue(SQUEUE), seen)
    assert first.sessions == (house.new.id,), "a task of the array"
    assert second.sessions == (house.stopped.id,)


def test_the_words_of_a_time_limit() -> None:
    error = subprocess.TimeoutExpired("squeue", 10)
    assert queue._sentence(error) == "nothing came in 10 seconds"
