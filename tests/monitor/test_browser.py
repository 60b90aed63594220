"""The monitor in a browser: refused without the token, usable with it, also in a real Chromium."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from rldsl.store.notes import read_notes
from tests.browser import open_chromium
from tests.monitor.conftest import SampleRuns
from tests.project import until

TOKEN = "open-sesame"


@dataclass(frozen=True)
class Served:
    port: int
    output: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def served(sample: SampleRuns, tmp_path: Path) -> Iterator[Served]:
    with serving(sample.runs, tmp_path) as server:
        yield server


@pytest.fixture
def served_with_actions(sample: SampleRuns, tmp_path: Path) -> Iterator[Served]:
    with serving(sample.runs, tmp_path, "--allow-actions") as server:
        yield server


@contextmanager
def serving(runs: Path, tmp_path: Path, *options: str) -> Iterator[Served]:
    server = Served(free_port(), tmp_path / "output.txt")
    command = [sys.executable, "-c", "from rldsl.cli import run; run()", "watch", str(runs), "--serve", *options]
    with server.output.open("w") as output:
        process = subprocess.Popen(
            [*command, "--port", str(server.port)],
            env={**os.environ, "RLDSL_WATCH_TOKEN": TOKEN, "COLUMNS": "200"},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        until(lambda: answers(server.port), 60)
        yield server
    finally:
        process.terminate()
        process.wait(60)


def test_every_request_needs_the_token(served: Served) -> None:
    async def ask() -> None:
        wrong = {f"rldsl_watch_{served.port}": "wrong"}
        for path in ("", "?token=wrong", "ws", "ws?token=open-sesame", "static/js/textual.js", "download/x", "no"):
            for cookies in ({}, wrong):
                async with aiohttp.ClientSession(cookies=cookies) as session, session.get(served.url + path) as answer:
                    assert answer.status == 403, path
                    assert "needs the token" in await answer.text()
        async with aiohttp.ClientSession(cookies=wrong) as session:
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await session.ws_connect(served.url + "ws")

    asyncio.run(ask())


def test_the_websocket_refuses_pages_of_other_servers(served: Served) -> None:
    async def ask() -> None:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            async with session.get(f"{served.url}?token={TOKEN}") as answer:
                assert answer.status == 200
                assert TOKEN not in str(answer.url), "the token does not stay in the address"
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await session.ws_connect(served.url + "ws", headers={"Origin": "http://evil.example"})
            async with session.ws_connect(served.url + "ws?width=100&height=30") as socket:
                assert (await socket.receive(60)).data

    asyncio.run(ask())


def test_the_url_is_printed(served: Served) -> None:
    until(lambda: "watching at" in served.output.read_text(), 60)
    assert re.search(rf"watching at {re.escape(served.url)}\?token={TOKEN}", served.output.read_text())


def test_the_monitor_only_shows_in_chromium(served: Served, sample: SampleRuns, tmp_path: Path) -> None:
    """The page loads from its own host alone, draws the sessions, takes keys, and stops nothing."""
    until(lambda: "see, but not change" in served.output.read_text(), 60)
    with open_chromium() as chromium:
        page = chromium.new_page(viewport={"width": 1200, "height": 700})
        frames, requests, errors = _recorded(page)
        assert page.goto(served.url).status == 403
        page.goto(f"{served.url}?token={TOKEN}")
        assert page.url == served.url
        _until_drawn(page, frames, "cartpole/clips")
        page.mouse.click(400, 600)  # to give it the keyboard focus
        page.keyboard.press("2")
        _until_drawn(page, frames, "against frame")
        frames.clear()
        page.keyboard.press("1")
        _until_drawn(page, frames, "cartpole/clips")
        page.keyboard.press("c")
        _until_drawn(page, frames, "this monitor is read-only")
        assert len(page.screenshot(path=tmp_path / "page.png")) > 10_000
    assert {urlsplit(url).netloc for url in requests if not url.startswith(("data:", "blob:"))} == {
        f"127.0.0.1:{served.port}"
    }
    assert any("RobotoMono" in url for url in requests), "the font comes along"
    assert not [error for error in errors if "Content Security Policy" in error]
    assert sample.alive.state() == "running"


def test_with_actions_sessions_are_resumed_in_chromium(served_with_actions: Served, sample: SampleRuns) -> None:
    served = served_with_actions
    with open_chromium() as chromium:
        page = chromium.new_page(viewport={"width": 1200, "height": 700})
        frames, _, _ = _recorded(page)
        page.goto(f"{served.url}?token={TOKEN}")
        _until_drawn(page, frames, "cartpole/clips")
        page.mouse.click(400, 600)
        page.keyboard.press("g")
        page.keyboard.press("r")  # cartpole/a2c, one of whose sessions failed
        _until_drawn(page, frames, "Resume 1 session?")
        page.keyboard.press("Enter")
        frames.clear()
        page.keyboard.press("n")
        _until_drawn(page, frames, "cartpole/clips")  # again, since the dialog is gone: it would swallow keys
        page.keyboard.press("N")
        _until_drawn(page, frames, "Note on 2 sessions")
        page.keyboard.type("from the browser")
        page.keyboard.press("Enter")
        until(lambda: read_notes(sample.failed.path).text == "from the browser", 60)  # before the page is closed
    assert sample.failed.state() == "failed", "Enter did not resume it"


def _recorded(page: Any) -> tuple[list[str], list[str], list[str]]:
    """What arrives over the websocket, the URLs that the page loads, and its errors."""
    frames: list[str] = []
    requests: list[str] = []
    errors: list[str] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(_text(frame))))
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    return frames, requests, errors


def _text(frame: str | bytes) -> str:
    return frame if isinstance(frame, str) else frame.decode("utf-8", "replace")


def _until_drawn(page: object, frames: list[str], words: str) -> None:
    """Waits until the words were sent to the page; escape sequences between them are removed."""
    for _ in range(600):
        if words in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", "".join(frames)):
            return
        page.wait_for_timeout(100)  # type: ignore[attr-defined]
    raise AssertionError(f"{words} was never drawn")
