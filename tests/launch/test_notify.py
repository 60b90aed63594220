"""Messages to a URL, received by a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from rldsl.launch.notify import check_url, post_message


@pytest.fixture
def received() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The URL of a server and the messages that it got; `/refuse` answers with an error."""
    messages: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(403 if self.path == "/refuse" else 200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", messages
        server.shutdown()


def test_a_message_arrives(received: tuple[str, list[dict[str, str]]]) -> None:
    url, messages = received
    assert post_message(f"{url}/topic", "cartpole/ppo failed", "watch ✗") is None
    assert messages == [{"title": "watch ✗", "text": "cartpole/ppo failed", "content": "cartpole/ppo failed"}]


def test_failures_are_sentences(received: tuple[str, list[dict[str, str]]]) -> None:
    url, _ = received
    assert "HTTP 403" in str(post_message(f"{url}/refuse", "x"))
    assert "could not be notified" in str(post_message("http://127.0.0.1:9/", "x"))
    assert "should be a URL" in str(post_message("file:///etc/passwd", "x"))
    assert check_url("https://ntfy.sh/topic") is None
