"""The answers of a server that are too rare or too large to wait for: pages, logs in pieces, refusals, addresses."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from submitit import AutoExecutor
from submitit.core.utils import DelayedSubmission

from rldsl import SpecError
from rldsl.launch.backend import QueueState, QueueUnavailable, Refused, Spending
from rldsl.launch.dstack import api as module
from rldsl.launch.dstack.api import Api, DstackError, DstackRefusal, Server, find_server
from rldsl.launch.dstack.backend import DstackBackend, state_of
from rldsl.launch.dstack.configuration import RAISED
from rldsl.launch.dstack.executor import RESULT, DstackInfoWatcher, split_log, submit_runs
from rldsl.spec.dstack import Dstack

RUNS = [
    {"id": str(index), "submitted_at": str(index), "run_spec": {"run_name": f"run-{index}"}} for index in range(250)
]


class Answers(BaseHTTPRequestHandler):
    """As little of a server as these tests need."""

    asked: list[tuple[str, Any]]
    faults: list[str]
    """How the next answers are broken, one after the other."""

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body))
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "closed":
            return
        if fault == "nonsense":
            self.wfile.write(b"what?\r\n\r\n")
            return
        status, answer = self.answer(self.path.rpartition("/")[2], body)
        status = int(fault) if fault.isdigit() else status
        data = b"null" if fault == "null" else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) + (100 if fault == "cut" else 0)))
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
        return 200, {}


FAULTS = ("502", "503", "closed", "nonsense", "null", "cut")


@pytest.fixture
def faults() -> list[str]:
    return []


@pytest.fixture
def asked() -> list[tuple[str, Any]]:
    return []


@pytest.fixture
def api(asked: list[tuple[str, Any]], faults: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.01, 0.01, 0.01))
    bound = type("Bound", (Answers,), {"asked": asked, "faults": faults})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_answer_is_asked_for_again(
    api: Api, asked: list[tuple[str, Any]], faults: list[str], fault: str
) -> None:
    faults.extend([fault] * 3)
    assert set(api.runs(["run-3"])) == {"run-3"} and len(asked) == 4
    faults.extend([fault] * 4)
    with pytest.raises(DstackError, match=r"the dstack server at http.* does not answer: ") as caught:
        api.runs(["run-3"])
    assert "\n" not in str(caught.value) and not isinstance(caught.value, DstackRefusal)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_is_started_once_and_found_again_if_the_answer_is_lost(
    api: Api, asked: list[tuple[str, Any]], faults: list[str], fault: str
) -> None:
    faults.append(fault)
    submit_runs(api, ["run-1"], {"configuration": {}})
    assert [path.rpartition("/")[2] for path, _ in asked] == ["apply", "list"]


def test_a_run_that_is_not_there_after_a_lost_answer_may_still_arrive(api: Api, faults: list[str]) -> None:
    faults.append("closed")
    with pytest.raises(DstackError, match="does not answer") as caught:
        submit_runs(api, ["absent"], {"configuration": {}})
    assert not isinstance(caught.value, Refused)


def test_a_refusal_is_not_asked_for_again(api: Api, asked: list[tuple[str, Any]], faults: list[str]) -> None:
    faults.append("403")
    with pytest.raises(DstackRefusal, match="does not know the token"):
        api.runs(["run-3"])
    assert len(asked) == 1


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
    assert told("running") == QueueState("running")
    assert told("terminating") == QueueState("completing")
    assert told("done", termination_reason="done_by_runner") == QueueState("done")
    assert told("failed", termination_reason="interrupted_by_no_capacity") == QueueState("failed", "interrupted")
    assert told("failed", termination_reason="volume_error") == QueueState("failed", "volume error")
    killed = told("failed", termination_reason="container_exited_with_error", exit_status=137)
    assert killed == QueueState("failed", "exit 137: killed, perhaps out of memory")
    assert told("terminated", termination_reason="terminated_by_user") == QueueState("cancelled", "stopped")
    assert told("something new") == QueueState("unknown")


# --- Money ------------------------------------------------------------------------


def costly(status: str, cost: float, price: float) -> dict[str, Any]:
    return {"status": status, "cost": cost, "latest_job_submission": {"job_provisioning_data": {"price": price}}}


def test_spending_is_what_all_runs_have_cost_and_the_price_of_those_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"a": costly("running", 1.25, 0.5), "b": costly("done", 2.0, 0.7), "c": {"status": "submitted", "cost": 0}}
    monkeypatch.setenv("DSTACK_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("DSTACK_TOKEN", "token")
    monkeypatch.setattr(Api, "runs", lambda self, names: {name: runs[name] for name in names})
    assert DstackBackend(Dstack(), Path()).spending(["a", "b", "c"]) == Spending(3.25, 0.5)


# --- Submitit ---------------------------------------------------------------------


def test_one_task_on_one_machine_is_all_there_is(tmp_path: Path) -> None:
    executor = AutoExecutor(tmp_path, cluster="dstack")
    executor.update_parameters(nodes=1, tasks_per_node=1, cpus_per_task=2)
    with pytest.raises(SpecError, match=r"one task on one machine: nodes=2 is not possible; submit several jobs"):
        executor.update_parameters(nodes=2)
    with pytest.raises(SpecError, match="tasks_per_node=4"):
        executor.update_parameters(tasks_per_node=4)


def test_a_server_that_is_silent_before_anything_was_submitted_has_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSTACK_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("DSTACK_TOKEN", "token")
    with pytest.raises(Refused, match="does not answer"):
        AutoExecutor(tmp_path, cluster="dstack").submit(divmod, 1, 2)


def test_jobs_that_have_ended_are_not_asked_for_again_and_silence_is_borne(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [
        {"a": {"status": "running"}, "b": {"status": "done"}},
        DstackError("the server does not answer: 502"),
        {},
    ]
    asked: list[set[str]] = []

    def runs(self: Api, names: set[str]) -> Any:
        asked.append(set(names))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setenv("DSTACK_SERVER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("DSTACK_TOKEN", "token")
    monkeypatch.setattr(Api, "runs", runs)
    watcher = DstackInfoWatcher()
    watcher.register_job("a"), watcher.register_job("b")
    watcher.update()
    assert (watcher.get_state("a", "cache"), watcher.is_done("b", "cache")) == ("RUNNING", True)
    watcher.update()
    assert watcher.get_state("a", "cache") == "RUNNING", "a server that is silent for a moment changes nothing"
    watcher.update()
    assert watcher.is_done("a", "cache"), "one that was deleted is over"
    assert asked == [{"a", "b"}, {"a"}, {"a"}]


@pytest.mark.parametrize(("raised", "code"), [(None, 1), ("0", 0)])
def test_a_function_that_raises_ends_its_run_as_it_is_told(tmp_path: Path, raised: str | None, code: int) -> None:
    name = "run-1"
    DelayedSubmission(divmod, 1, 0).dump(tmp_path / f"{name}_submitted.pkl")
    own = {"SUBMITIT_EXECUTOR": "dstack", "DSTACK_RUN_NAME": name, "DSTACK_NODE_RANK": "0", "DSTACK_NODES_NUM": "1"}
    command = [sys.executable, "-m", "rldsl.launch.dstack.host", str(tmp_path)]
    env = {**os.environ, **own, **({RAISED: raised} if raised else {})}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code
    log, value = split_log(done.stdout)
    assert value is not None and b"ZeroDivisionError" in value and "ZeroDivisionError" in log + done.stderr
