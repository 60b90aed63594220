"""The monitor in a browser: textual-serve behind a token. Whoever has no token gets nothing, the websocket included."""

from __future__ import annotations

import logging
import secrets
import shlex
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path

from aiohttp import web
from textual_serve.server import Server

COOKIE = "rldsl_watch"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


_asked_host: ContextVar[str | None] = ContextVar("asked_host", default=None)


class TokenServer(Server):
    """A server that asks for the token once, in the address, and keeps it as a cookie."""

    def __init__(self, command: str, *, host: str, port: int, token: str) -> None:
        super().__init__(command, host=host, port=port, title="rldsl watch")
        self.token = token

    @property
    def public_url(self) -> str:
        """By the name that the browser used: it may come through a forwarded port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{_asked_host.get() or f'{host}:{self.port}'}"

    @public_url.setter
    def public_url(self, url: str) -> None:
        """What the library works out for itself is not used."""

    @property
    def address(self) -> str:
        """What a person opens."""
        return f"{self.public_url}/?token={self.token}"

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        _asked_host.set(request.host)
        if request.path == "/" and _same(request.query.get("token"), self.token):
            return self._let_in()
        if not _same(request.cookies.get(self._cookie), self.token) or not self._from_here(request):
            raise web.HTTPForbidden(text="the address needs its token: it is the one that `rldsl watch` printed\n")
        return await handler(request)

    @property
    def _cookie(self) -> str:
        """Cookies do not know of ports: two monitors on one host need two names."""
        return f"{COOKIE}_{self.port}"

    def _let_in(self) -> web.StreamResponse:
        """To the same address without the token, so that it stays out of the history."""
        answer = web.HTTPFound("/")
        answer.set_cookie(self._cookie, self.token, httponly=True, samesite="Strict")
        return answer

    def _from_here(self, request: web.Request) -> bool:
        """Whether a page of this server asks: no other page may drive the websocket."""
        origin = request.headers.get("Origin")
        return origin is None or origin == self.public_url

    async def on_startup(self, app: web.Application) -> None:
        self.console.print(f"watching at {self.address}", soft_wrap=True, highlight=False)
        self.console.print("who has this address can stop and resume sessions; Ctrl-C ends it", highlight=False)

    def initialize_logging(self) -> None:
        """Warnings only, plain: a line for every request is of no use to anybody."""
        logging.basicConfig(level="WARNING", format="%(message)s")


def _same(given: str | None, token: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(), token.encode())


def serve(runs: Path, *, host: str, port: int, token: str | None, light: bool) -> None:
    """Serves until Ctrl-C; every browser gets a monitor of its own."""
    command = [sys.executable, "-c", "from rldsl.cli import run; run()", "watch", str(runs.resolve())]
    chosen = token or secrets.token_urlsafe(24)
    TokenServer(shlex.join([*command, *(["--light"] if light else [])]), host=host, port=port, token=chosen).serve()
