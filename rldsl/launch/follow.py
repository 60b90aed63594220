"""Following jobs until they have ended or the user asks to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from rldsl.launch.observer import Ending, FollowedSession, Observer

SLEEP_SECONDS = 0.1
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Counts the requests to stop that this process received."""

    def __init__(self) -> None:
        self.count = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Inside the block, SIGINT (Ctrl-C), SIGTERM and SIGHUP are counted instead of raised."""
    stop = StopSignals()
    previous = {number: signal.signal(number, stop.handle) for number in STOP_SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class JobGroup(Protocol):
    """Jobs that were started together: processes of this command, or jobs of a queue."""

    @property
    def active(self) -> bool:
        """Whether some of them have not ended."""

    @property
    def running(self) -> Collection[FollowedSession]:
        """The sessions that run now."""

    def poll(self) -> list[Ending]:
        """Updates the states of all jobs; returns the sessions that ended since the last call."""

    def pause(self) -> float:
        """Seconds until the next poll."""

    def stop(self, requests: int) -> bool:
        """Handles the user's n-th request to stop; returns whether to go on following until the jobs have ended."""

    def abort(self) -> None:
        """Called if following fails: leaves no process behind that nobody waits for."""


def follow(jobs: JobGroup, observer: Observer, stop: StopSignals) -> None:
    """Reports progress and endings until all jobs have ended, or until a stop request ends the following."""
    handled = 0
    try:
        while jobs.active:
            if stop.count > handled:
                handled = stop.count
                if not jobs.stop(handled):
                    return
                if handled == 1:
                    observer.stopping()
            _report(jobs, observer)
            sleep(jobs.pause(), stop, handled)
        _report(jobs, observer)
    except BaseException:
        jobs.abort()
        raise


def _report(jobs: JobGroup, observer: Observer) -> None:
    for ending in jobs.poll():
        observer.ended(ending)
    observer.progress(jobs.running)


def sleep(seconds: float, stop: StopSignals, handled: int) -> None:
    """Sleeps in short pieces, so that a stop request is handled at once."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and stop.count == handled:
        time.sleep(min(SLEEP_SECONDS, seconds))
