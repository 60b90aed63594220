"""Running a plan as jobs of a queue: submits what is missing, and follows it for as long as somebody looks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rldsl.cli.foreground import (
    INTERRUPTED,
    Stop,
    command,
    explain,
    freeze,
    invocation,
    last_lines,
    pending,
    stopping,
    summary,
)
from rldsl.cli.progress import Display, Followed, make_display
from rldsl.cli.status_view import known_queues
from rldsl.cli.tables import echo, escape
from rldsl.launch.contract import Refused
from rldsl.launch.queues import QueuedJob, Queues
from rldsl.launch.submit import Reconciled, Submitter, reconcile
from rldsl.launch.tickets import Ticket
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Plan
from rldsl.report.words import count
from rldsl.spec.launcher import Launcher
from rldsl.store.session_dir import SessionDir

POLL_SECONDS = 1.0
SHARE = 0.1
"""Of the time that may go to reading run directories, however many there are."""
QUEUE_SECONDS = 15.0
"""Between two questions to a queue: those who keep it do not like to be asked more often."""
MOST_IDS = 6


@dataclass(frozen=True)
class Order:
    """Which sessions of a plan to run where."""

    plan: Plan
    runs: Path
    file: Path
    launcher: Launcher
    states: Sequence[str]


def run_plan(order: Order, detach: bool, cancel_stale: bool) -> int:
    """Submits what is neither done nor in the queue, and follows all of it; 0 when nothing failed."""
    queues = known_queues(order.runs)
    queues.fetch(queues.of_trials({row.id for row in order.plan.rows()}))
    wanted = list(pending(order.plan, Existing(order.runs), (*order.states, "running"), order.launcher.same_python))
    found = reconcile(order.plan, wanted, queues)
    missing = [one for one in found.missing if one.report.state != "running"]
    _say_kept(found, cancel_stale, queues)
    code = _submit(order, missing)
    if detach:
        echo(f"`status` shows how they stand, `stop` ends them, [bold]{command()}[/bold] reconciles")
        return code
    return max(code, _follow(order, [*missing, *(one for one in wanted if one.id in found.live)]))


def _say_kept(found: Reconciled, cancel_stale: bool, queues: Queues) -> None:
    if found.live:
        echo(f"{count(len(found.live), 'session')} in the queue already")
    if not found.stale:
        return
    what = f"{count(len(found.stale), 'job')} in the queue no longer in the plan ({_ids(found.stale)})"
    if not cancel_stale:
        echo(f"[yellow]{what}: --cancel-stale cancels them[/yellow]")
        return
    refused = queues.cancel(found.stale)
    echo("; ".join(map(escape, refused)) if refused else f"cancelled {what}")


def _submit(order: Order, missing: Sequence[PlannedSession]) -> int:
    if not missing:
        return 0
    submitter = Submitter(freeze(order.plan, order.runs), order.runs, order.file, invocation(), order.launcher)
    try:
        tickets = submitter.submit(missing)
    except Refused as error:
        if not error.ids:
            raise
        echo(f"[red]only {count(len(error.ids), 'job')} submitted: {escape(str(error))}[/red]")
        return 1
    jobs = count(len(tickets), "job")
    echo(f"submitted {count(len(missing), 'session')} as {jobs} to {order.launcher.kind}: {_ids(tickets)}")
    return 0


def _ids(tickets: Sequence[Ticket]) -> str:
    shown = ", ".join(ticket.job_id for ticket in tickets[:MOST_IDS])
    return shown + (", ..." if len(tickets) > MOST_IDS else "")


def _follow(order: Order, planned_sessions: Sequence[PlannedSession]) -> int:
    if not planned_sessions:
        return summary(order.plan, Existing(order.runs))
    with stopping() as stop:
        follower = _Follower(planned_sessions, order.runs)
        follower.wait(stop)
    if stop.asked:
        echo(f"the jobs go on: `status` shows them, `stop` ends them, [bold]{command()}[/bold] follows them again")
        return INTERRUPTED
    return max(summary(order.plan, Existing(order.runs)), follower.lost > 0)


class _Follower:
    """Sessions whose jobs are in a queue, until none of them is."""

    def __init__(self, planned_sessions: Iterable[PlannedSession], runs: Path) -> None:
        self.runs = runs
        self.waiting = {one.id: one for one in planned_sessions}
        self.running: dict[str, Followed] = {}
        self.suspected: set[str] = set()
        self.lost = 0
        self.queues = Queues(runs)

    def wait(self, stop: Stop) -> None:
        """Returns when all have ended, or when somebody asks to."""
        asked = time.monotonic()
        with make_display() as display:
            while (self.waiting or self.running) and not stop.asked:
                began = time.monotonic()
                if began - asked >= QUEUE_SECONDS:
                    asked = began
                    self._ask(display)
                self._look(display)
                _sleep(max(POLL_SECONDS, (time.monotonic() - began) / SHARE), stop)

    def _look(self, display: Display) -> None:
        """By the run directories: who has started, how far they are, who has ended."""
        for id, one in list(self.waiting.items()):
            if self._directory(one).report().state in ("running", "done", "failed"):
                self.running[id] = Followed.start(self.waiting.pop(id), self._directory(one))
        for id, followed in list(self.running.items()):
            followed.read()
            report = followed.directory.report()
            if report.state in ("done", "failed"):
                self._ended(id, report.state, report.reason, display)
            elif report.state in ("resume", "new"):  # requeued, or lost: its queue knows
                self.waiting[id] = self.running.pop(id).planned
        display.update(self.running.values())

    def _ask(self, display: Display) -> None:
        """By the queue: whose job has ended without a word."""
        held = self.queues.held([*self.waiting, *self.running])
        self.queues.fetch([one.ticket for one in held.values()])
        self._look(display)
        for id, one in held.items():
            if id in self.waiting and not one.state.live:
                self._suspect(id, one, display)
            else:
                self.suspected.discard(id)

    def _suspect(self, id: str, held: QueuedJob, display: Display) -> None:
        """A job that failed has; of one that is done or unknown, the run directory may not tell yet."""
        if held.state.state in ("failed", "cancelled") or id in self.suspected:
            planned = self.waiting.pop(id)
            self.running[id] = Followed.start(planned, self._directory(planned))
            self.lost += 1
            self._ended(id, "resume", held.state.reason or f"its job {held.ticket.job_id} is gone", display, held)
        self.suspected.add(id)

    def _ended(self, id: str, state: str, reason: str | None, display: Display, held: QueuedJob | None = None) -> None:
        one = self.running.pop(id)
        one.read()
        display.ended(one, state)
        if state != "done":
            lines = last_lines(one.directory.log) or (self.queues.last_words(held.ticket) if held else [])
            explain(reason or state, lines)

    def _directory(self, one: PlannedSession) -> SessionDir:
        return SessionDir(self.runs / one.directory)


def _sleep(seconds: float, stop: Stop) -> None:
    """In short pieces, so that Ctrl-C is heard at once."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stop.asked:
        time.sleep(0.1)
