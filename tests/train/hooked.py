"""Hooks of the tests."""

from __future__ import annotations

from rldsl.extend import LogPoint, SessionEnd

ENDED: list[SessionEnd] = []


def stop_seed_0(point: LogPoint) -> None:
    if point.seed == 0 and point.frame >= 192:
        point.save_checkpoint("early")
        point.stop("far enough")


def fail(point: LogPoint) -> None:
    raise ValueError("the hook is broken")


def collect(end: SessionEnd) -> None:
    ENDED.append(end)


def fail_at_end(end: SessionEnd) -> None:
    raise ValueError("the last hook is broken")
