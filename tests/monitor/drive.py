"""The app driven by Textual's pilot, with looks at the run directory that the test decides on."""

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
    """A person at the keyboard, and what they see."""

    def __init__(self, app: WatchApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def look(self) -> None:
        """Lets the app see all that has changed."""
        self.app.index._folders_due = self.app.index._sweep_due = -1.0
        self.app.take(self.app.look())
        while self.app.index.unread:
            self.app.take(self.app.look())
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Until threads that were started have said what they found."""
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def until(self, holds: Callable[[], Any], seconds: float = 20.0) -> None:
        for _ in range(int(seconds / 0.05)):
            if holds():
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"it never happened:\n{self.text}")

    async def look_until(self, holds: Callable[[], Any], seconds: float = 20.0) -> None:
        """Looks again and again, as the app does by itself when it is live."""
        for _ in range(int(seconds / 0.05)):
            await self.look()
            if holds():
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"it never happened:\n{self.text}")

    @property
    def text(self) -> str:
        """The screen as a person reads it."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    def line(self, words: str) -> str:
        """The line of the screen that has these words."""
        return next(line for line in self.text.splitlines() if words in line)


@asynccontextmanager
async def watching(runs: Path, size: tuple[int, int] = SIZE, **options: Any) -> AsyncIterator[Driver]:
    app = WatchApp(runs, **{"live": False, "queue": Queue({}), **options})
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        await driver.look()
        yield driver


def drive(
    runs: Path, scenario: Callable[[Driver], Awaitable[None]], size: tuple[int, int] = SIZE, **options: Any
) -> None:
    """Runs a scenario from the start of the app to its end."""

    async def run() -> None:
        async with watching(runs, size, **options) as driver:
            await scenario(driver)

    asyncio.run(run())
