"""A session as the monitor shows it: its state, its last log point, and what other programs noted about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.store.session_state import SessionState

STALL_SECONDS = 600.0
STALL_INTERVALS = 10.0
"""A running session is stalled if it has written nothing for ten minutes and for ten times its usual interval."""
CLOCK_TOLERANCE = 2.0
"""Seconds by which the clocks of a host and of a filesystem may differ."""
NOT_LIVE = frozenset({"new", "queued", "resume", "paused", "done", "failed", "killed"})
"""States without a process. Every other state, also one that this version does not know, has one."""


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """The state of a session when it was last read."""

    path: str
    status: SessionState
    env: str
    agent: str
    trial: str
    backend: str  # `local`, a backend and its job id, or the name of another host
    job: str | None  # job id in the queue
    changed: float | None  # time of its newest log point or journal event
    left: float | None  # estimated seconds until it is done
    condition: str = "new"  # its state on disk, more exactly than `status.state`
    since: float | None = None  # time of its last event
    fps: float | None = None  # only of a session that trains now, or that is done
    row: Mapping[str, Any] = field(default_factory=dict)  # its last log point
    facts: Mapping[str, Any] = field(default_factory=dict)  # fields of its events, such as `device`
    problem: str = ""  # why a file of it cannot be read
    action: str = ""  # `stopping` or `resuming`, from a key press until the journal confirms it

    @property
    def state(self) -> str:
        """What the monitor shows."""
        return self.action or self.condition

    @property
    def label(self) -> str:
        """The state as tables show it."""
        return self.state if self.action or not self.status.other_code else f"{self.state} (other code)"

    @property
    def note(self) -> str:
        """Why it is in this state, damage to its files, tags and notes."""
        return "; ".join(filter(None, [self.status.note, self.problem]))

    @property
    def live(self) -> bool:
        """Whether a process trains it."""
        return self.status.state not in NOT_LIVE

    @property
    def is_search(self) -> bool:
        """Whether it belongs to a search: searches have a seed range of their own."""
        return self.status.seed >= SEARCH_SEEDS_FROM


def condition_of(status: SessionState, changed: float | None, interval: float, now: float) -> str:
    """The state of a session: `killed` if its process vanished, `stalled` if it lives and writes nothing."""
    if status.state == "resume" and status.status == "started":
        return "killed"
    if status.state == "resume" and status.status == "crashed":
        return "killed" if (status.reason or "").startswith("killed") else "crashed"
    if status.state != "running":
        return status.state
    if status.compiling_since is not None:
        return "compiling"
    silent = now - changed if changed is not None else 0.0
    return "stalled" if silent > max(STALL_SECONDS, STALL_INTERVALS * interval) else "running"


def is_current(status: SessionState, metrics_time: float | None) -> bool:
    """Whether the last log point comes from the present attempt: an earlier one says nothing about speed now."""
    if metrics_time is None:
        return False
    return status.attempt_start is None or metrics_time >= status.attempt_start - CLOCK_TOLERANCE
