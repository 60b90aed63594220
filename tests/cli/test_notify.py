"""`--notify`: messages to a real HTTP server when a session fails and when all have ended, and nowhere else its URL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.project import Project

EXPERIMENT = """
    from typing import ClassVar, Literal
    from rldsl import Agent, Classic, Random, experiment, main

    class Broken(Agent, frozen=True):
        '''Fails.'''

        kind: Literal["broken"] = "broken"
        implementation: ClassVar[str] = "broken:BrokenAgent"

    cartpole = experiment("cartpole").env(Classic("CartPole-v1")).frames(400).log_every(100)
    if __name__ == "__main__":
        main(cartpole.agent(Random()), cartpole.agent(Broken()))
"""
BROKEN = """
    from rldsl.agents.random import RandomAgent

    class BrokenAgent(RandomAgent):
        def iterate(self, world):
            raise RuntimeError("the third wheel came off")
"""
SECRET = "s3cr3t-topic"


class Server(ThreadingHTTPServer):
    """A loopback webhook that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[dict[str, str]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{SECRET}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append({"path": self.path, **json.loads(body)})
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def mentions(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_failures_and_the_end_are_posted_and_the_url_is_kept_nowhere(project: Project, server: Server) -> None:
    project.write(EXPERIMENT)
    project.write(BROKEN, "broken.py")
    ran = project.python("exp.py", "train", "--notify", server.url)
    assert ran.returncode == 1
    texts = [message["text"] for message in server.received]
    assert len(texts) == 2 and server.received[0]["path"] == f"/{SECRET}"
    assert texts[0].startswith("failed: cartpole/broken seed 0 (") and "the third wheel came off" in texts[0]
    assert texts[1].startswith("2 sessions: ") and "cartpole/random seed 0: done, return" in texts[1]
    assert not mentions(project.root) and SECRET not in ran.stdout + ran.stderr
    again = project.python("exp.py", "train", "--only", "random", f"--notify={server.url}")
    assert again.returncode == 0 and len(server.received) == 2, "nothing was trained"


def test_the_environment_variable_and_a_server_that_refuses(
    project: Project, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(EXPERIMENT)
    server.status = 403
    monkeypatch.setenv("RLDSL_NOTIFY", server.url)
    ran = project.python("exp.py", "train", "--only", "random")
    assert ran.returncode == 0 and len(server.received) == 1
    assert "refused a notification: HTTP 403" in ran.stdout
    assert not mentions(project.root) and SECRET not in ran.stdout


def test_what_is_no_url_is_one_sentence(project: Project) -> None:
    project.write(EXPERIMENT)
    ran = project.python("exp.py", "train", "--notify", SECRET)
    assert ran.returncode == 2 and "error: --notify should be a URL such as https://ntfy.sh/my-topic" in ran.stderr
    assert SECRET not in ran.stderr and not project.runs.exists()
