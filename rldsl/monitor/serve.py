"""The monitor in a browser: textual-serve behind a token, which every request needs, also for the websocket."""

from __future__ import annotations

import logging
import re
import secrets
import shlex
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path

from aiohttp import web
from textual_serve.server import Server

COOKIE = "rldsl_watch"

REMOTE_FONT = re.compile(r'<link\s+rel="stylesheet"\s+href="https?://fonts[^>]*>')
FONT = """<style>@font-face { font-family: "Roboto Mono"; font-weight: 100 700;
src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf") format("truetype"); }</style>"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


_request_host: ContextVar[str | None] = ContextVar("request_host", default=None)
"""The host that the browser asked for: it may come through a forwarded port."""


class TokenServer(Server):
    """Takes the token once, from the URL, and keeps it in a cookie."""

    def __init__(self, command: str, *, host: str, port: int, token: str, read_only: bool = True) -> None:
        super().__init__(command, host=host, port=port, title="rldsl watch")
        self.token, self.read_only = token, read_only

    @property
    def public_url(self) -> str:
        """The URL with the host name that the browser used."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{_request_host.get() or f'{host}:{self.port}'}"

    @public_url.setter
    def public_url(self, url: str) -> None:
        """Ignored: textual-serve assigns the URL that it was started with."""

    @property
    def address(self) -> str:
        """The URL to open, with the token."""
        return f"{self.public_url}/?token={self.token}"

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        _request_host.set(request.host)
        if request.path == "/" and _same(request.query.get("token"), self.token):
            return self._set_cookie()
        if not _same(request.cookies.get(self._cookie_name), self.token) or not self._same_origin(request):
            raise web.HTTPForbidden(text="the URL needs the token that `rldsl watch` printed\n")
        return await handler(request)

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page, with the font that textual-serve brings along instead of one from another host."""
        page: web.StreamResponse = await super().handle_index(request)
        if isinstance(page, web.Response):
            page.text = REMOTE_FONT.sub(FONT, page.text or "")
        page.headers["Content-Security-Policy"] = "default-src 'self' 'unsafe-inline' data: blob: ws: wss:"
        return page

    @property
    def _cookie_name(self) -> str:
        """Cookies are not separated by port: two monitors on one host need two names."""
        return f"{COOKIE}_{self.port}"

    def _set_cookie(self) -> web.StreamResponse:
        """Redirects to the URL without the token, so that it stays out of the browser's history."""
        response = web.HTTPFound("/")
        response.set_cookie(self._cookie_name, self.token, httponly=True, samesite="Strict")
        return response

    def _same_origin(self, request: web.Request) -> bool:
        """Whether the request comes from a page of this server: other sites must not use the websocket."""
        origin = request.headers.get("Origin")
        return origin is None or origin == self.public_url

    async def on_startup(self, app: web.Application) -> None:
        self.console.print(f"watching at {self.address}", soft_wrap=True, highlight=False)
        may = "see, but not change, the sessions" if self.read_only else "stop and resume sessions"
        self.console.print(f"anyone with this URL can {may}; Ctrl-C ends it", highlight=False)

    def initialize_logging(self) -> None:
        """Warnings only, instead of a line for every request."""
        logging.basicConfig(level="WARNING", format="%(message)s")


def _same(given: str | None, token: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(), token.encode())


def serve(runs: Path, *, host: str, port: int, token: str | None, light: bool, read_only: bool = True) -> None:
    """Serves until Ctrl-C; every page runs a monitor process of its own."""
    command = [sys.executable, "-c", "from rldsl.cli import run; run()", "watch", str(runs.resolve())]
    command += ["--read-only" if read_only else "--allow-actions", *(["--light"] if light else [])]
    token = token or secrets.token_urlsafe(24)
    TokenServer(shlex.join(command), host=host, port=port, token=token, read_only=read_only).serve()
