"""The answers of a server that are too rare or too large to wait for: pages, logs in pieces, refusals, addresses."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rldsl.launch.backend import QueueState, QueueUnavailable, Refused
from rldsl.launch.dstack import api as module
from rldsl.launch.dstack.api import Api, DstackError, Server, find_server
from rldsl.launch.dstack.backend import DstackBackend, state_of
from rldsl.launch.dstack.executor import RESULT, split_log, submit_runs
from rldsl.spec.dstack import Dstack

RUNS = [
    {"id": str(index), "submitted_at": str(index), "run_spec": {"run_name": f"run-{index}"}} for index in range(250)
]


class Answers(BaseHTTPRequestHandler):
    """As little of a server as these tests need."""

    asked: list[tuple[str, Any]]

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body))
        status, answer = self.answer(self.path.rpartition("/")[2], body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def answer(self, what: str, body: Any) -> tuple[int, Any]:
        if what == "list":
            first = int(body.get("prev_run_id", -1)) + 1
            return 200, RUNS[first : first + body["limit"]]
        if what == "poll":
            pieces = [b"gr\xc3", b"\xbc\xc3\x9fe\r\nse", b"cond\r\n"]
            index = int(body["next_token"] or 0)
            logs = [{"message": base64.b64encode(pieces[index]).decode()}]
            return 200, {"logs": logs, "next_token": str(index + 1) if index < 2 else None}
        if what == "apply" and body["plan"]["run_spec"]["run_name"] == "bad":
            return 422, {"detail": [{"loc": ["body", "plan", "run_spec"], "msg": "no such thing", "type": "x"}]}
        return 200, None


@pytest.fixture
def asked() -> list[tuple[str, Any]]:
    return []


@pytest.fixture
def api(asked: list[tuple[str, Any]]) -> Iterator[Api]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Answers,), {"asked": asked}))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Api(Server(f"http://127.0.0.1:{server.server_address[1]}", "token", "main"))
    server.shutdown()
    server.server_close()
    thread.join()


def test_runs_are_asked_for_a_hundred_at_a_time_and_no_more_pages_than_needed(
    api: Api, asked: list[tuple[str, Any]]
) -> None:
    assert set(api.runs(["run-3", "run-7"])) == {"run-3", "run-7"}
    assert len(asked) == 1
    assert set(api.runs([f"run-{index}" for index in range(250)])) == {one["run_spec"]["run_name"] for one in RUNS}
    assert len(asked) == 4
    assert api.runs(["absent"]) == {}
    assert len(asked) == 7


def test_a_log_is_joined_before_it_is_read(api: Api) -> None:
    run = {"run_spec": {"run_name": "a"}, "latest_job_submission": {"id": "1"}}
    assert api.log(run) == "grüße\nsecond\n"
    assert api.log({"run_spec": {"run_name": "a"}, "latest_job_submission": None}) == ""


def test_a_value_in_a_log_is_taken_out_of_it() -> None:
    value = base64.b64encode(b"value").decode()
    assert split_log(f"one\n{RESULT}{value}\ntwo\n") == ("one\ntwo\n", b"value")
    assert split_log("one\n") == ("one\n", None)
    assert split_log(f"one\n{RESULT}cut sh") == ("one", None)


def test_what_was_taken_before_a_refusal_is_kept_and_what_came_after_is_stopped(
    api: Api, asked: list[tuple[str, Any]]
) -> None:
    with pytest.raises(Refused, match=r"dstack refuses: plan\.run_spec: no such thing") as caught:
        submit_runs(api, ["a", "bad", "c"], {"configuration": {}})
    assert caught.value.ids == ["a"]
    assert asked[-1] == ("/api/project/main/runs/stop", {"runs_names": ["c"], "abort": False})


def test_nothing_is_asked_for_no_runs(api: Api, asked: list[tuple[str, Any]]) -> None:
    api.stop([])
    api.delete([])
    assert api.runs([]) == {} and not asked


def test_a_server_that_is_not_there_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSTACK_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("DSTACK_TOKEN", "a-secret-token")
    with pytest.raises(QueueUnavailable, match="does not answer") as caught:
        DstackBackend(Dstack(), Path()).states(["a"])
    assert "a-secret-token" not in str(caught.value) + repr(find_server())
    assert DstackBackend(Dstack(), Path()).check()[0].ok is False


def test_the_server_is_found_by_the_environment_or_by_what_dstack_wrote(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DSTACK_SERVER_URL", "DSTACK_TOKEN", "DSTACK_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "CONFIG", tmp_path / "config.yml")
    with pytest.raises(DstackError, match="no dstack server is known"):
        find_server()
    projects = "- {name: a, url: 'http://a', token: t}\n- {name: b, url: 'http://b/', token: u, default: true}\n"
    (tmp_path / "config.yml").write_text(f"projects:\n{projects}")
    assert find_server() == Server("http://b", "u", "b")
    monkeypatch.setenv("DSTACK_PROJECT", "a")
    assert find_server() == Server("http://a", "t", "a")
    monkeypatch.setenv("DSTACK_SERVER_URL", "file:///etc/passwd")
    monkeypatch.setenv("DSTACK_TOKEN", "t")
    with pytest.raises(DstackError, match="begins with http"):
        find_server()


def told(status: str, **job: Any) -> QueueState:
    return state_of({"status": status, "latest_job_submission": job or None})


def test_every_state_has_a_word() -> None:
    assert told("submitted") == QueueState("pending")
    assert told("provisioning") == QueueState("pending", "starts a machine")
    assert told("pending", termination_reason="instance_unreachable") == QueueState(
        "pending", "again after: node failure"
    )
    assert told("running") == told("terminating") == QueueState("running")
    assert told("done", termination_reason="done_by_runner") == QueueState("done")
    assert told("failed", termination_reason="interrupted_by_no_capacity") == QueueState("failed", "interrupted")
    assert told("failed", termination_reason="volume_error") == QueueState("failed", "volume error")
    killed = told("failed", termination_reason="container_exited_with_error", exit_status=137)
    assert killed == QueueState("failed", "exit 137: killed, perhaps out of memory")
    assert told("terminated", termination_reason="terminated_by_user") == QueueState("cancelled", "stopped")
    assert told("something new") == QueueState("unknown")
