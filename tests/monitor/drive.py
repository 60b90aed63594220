"""Drives the app with Textual's pilot. The index is refreshed only when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from textual.pilot import Pilot

from rldsl.monitor.app import WatchApp
from rldsl.monitor.queue import Queue

SIZE = (120, 40)


Scenario: TypeAlias = "Callable[[Driver], Awaitable[None]]"


class Driver:
    """Presses keys and reads the screen."""

    def __init__(self, app: WatchApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def refresh(self) -> None:
        """Lets the app read everything that has changed."""
        self.app.index._next_scan = self.app.index._next_idle_check = -1.0
        self.app.apply(self.app.refresh_index())
        while self.app.index.unread:
            self.app.apply(self.app.refresh_index())
        await self.settle()

    async def press(self, *keys: str) -> None:
        """Presses keys, each after what the one before has begun is done: a thread may open or close a dialog."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        """Waits for all worker threads, also those that others start when they end, and their messages."""
        while any(not worker.is_finished for worker in self.app.workers):
            await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def until(self, holds: Callable[[], Any], seconds: float = 20.0) -> None:
        for _ in range(int(seconds / 0.05)):
            if holds():
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"the condition never held; the screen:\n{self.text}")

    async def refresh_until(self, holds: Callable[[], Any], seconds: float = 20.0) -> None:
        """Refreshes repeatedly, as the app does by itself when it is live."""
        for _ in range(int(seconds / 0.05)):
            await self.refresh()
            if holds():
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"the condition never held; the screen:\n{self.text}")

    @property
    def text(self) -> str:
        """The text on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    def line(self, words: str) -> str:
        """The first line of the screen that contains these words."""
        return next(line for line in self.text.splitlines() if words in line)


@asynccontextmanager
async def watching(runs: Path, size: tuple[int, int] = SIZE, **options: Any) -> AsyncIterator[Driver]:
    app = WatchApp(runs, **{"live": False, "queue": Queue({}), **options})
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        await driver.refresh()
        yield driver


def drive(
    runs: Path, scenario: Callable[[Driver], Awaitable[None]], size: tuple[int, int] = SIZE, **options: Any
) -> None:
    """Starts the app, runs a scenario and ends the app."""

    async def run() -> None:
        async with watching(runs, size, **options) as driver:
            await scenario(driver)

    asyncio.run(run())
