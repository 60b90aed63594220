"""A proxy in front of a server that loses requests and answers, as networks do."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

FAULTS = ("lost request", "lost answer", "502", "cut", "null", "late")
APPLY, OTHER = 0.5, 0.1
"""How often a request to start a run, and any other request, meets a fault."""


class FaultyProxy:
    """Forwards POST requests; `rate` scales how often it fails."""

    def __init__(self, url: str, seed: int) -> None:
        self.target = urlsplit(url).netloc
        self.random = random.Random(seed)
        self.rate = 0.0
        self.faults: Counter[str] = Counter()
        self.late = 0
        """Requests that are still on their way."""

    def choose(self, path: str) -> str:
        often = APPLY if path.endswith("runs/apply") else OTHER
        if self.random.random() >= often * self.rate:
            return ""
        fault = self.random.choice(FAULTS if path.endswith("runs/apply") else FAULTS[:-1])
        self.faults[fault] += 1
        return fault

    def forward(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.target, timeout=60)
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer

    def forward_late(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        self.late += 1
        time.sleep(self.random.uniform(0.05, 0.5))
        self.forward(path, body, headers)
        self.late -= 1


class Handler(BaseHTTPRequestHandler):
    proxy: FaultyProxy

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type")}
        fault = self.proxy.choose(self.path)
        if fault == "late":
            arguments = (self.path, body, headers)
            threading.Thread(target=self.proxy.forward_late, args=arguments, daemon=True).start()
        if fault in ("late", "lost request"):
            return
        status, answer = self.proxy.forward(self.path, body, headers)
        if fault == "lost answer":
            return
        self.reply(502 if fault == "502" else status, b"null" if fault == "null" else answer, fault == "cut")

    def reply(self, status: int, answer: bytes, cut: bool) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer) + (10 if cut else 0)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            return  # who asked was killed


@contextmanager
def faulty_proxy(url: str, seed: int = 0) -> Iterator[tuple[FaultyProxy, str]]:
    """A proxy and its address, while the block lasts."""
    proxy = FaultyProxy(url, seed)
    members: dict[str, Any] = {"proxy": proxy}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), members))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
