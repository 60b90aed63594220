"""The command `logs`: the end of the logs of sessions, or of their journals, and what is added to the logs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rldsl.cli.selected import Selected
from rldsl.cli.tables import echo, escape
from rldsl.monitor.session_log import JOURNAL_TITLE, event_line
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.spec.errors import SpecError, one_line
from rldsl.store.files import TailReader
from rldsl.store.journal import read_journal
from rldsl.store.session_dir import SessionDir

POLL_SECONDS = 0.5


def show_logs(selected: Selected, runs: Path, lines: int, follow: bool) -> None:
    """Prints the last lines of each log; with `follow`, also new ones until the sessions have ended."""
    sessions = [one for one in Existing(runs).sessions(selected.plan) if (runs / one.directory).is_dir()]
    if not sessions:
        raise SpecError(f"none of these sessions has been started in {runs}: there is no log yet")
    readers = {one.id: TailReader(SessionDir(runs / one.directory).log) for one in sessions}
    for number, one in enumerate(sessions):
        if len(sessions) > 1:
            echo(f"{'' if number == 0 else chr(10)}[bold]==> {_name(one)} <==[/bold]")
        _print(_end(readers[one.id], SessionDir(runs / one.directory), lines))
    while follow:
        running = _any_running(sessions, runs)
        for one in sessions:
            prefix = f"{one.id}: " if len(sessions) > 1 else ""
            _print([prefix + line for line in readers[one.id].read_new()])
        if not running:
            return
        time.sleep(POLL_SECONDS)


def _end(log: TailReader, session: SessionDir, lines: int) -> Sequence[str]:
    """The last lines of the log; if nothing was printed, of the journal as text."""
    found = log.read_new()
    if found or not lines:
        return found[-lines:] if lines else []
    events = [one_line(event_line(event)) for event in read_journal(session.journal.path)[-lines:]]
    return [JOURNAL_TITLE, *events] if events else []


def _any_running(sessions: Sequence[PlannedSession], runs: Path) -> bool:
    return any(SessionDir(runs / one.directory).read_state().state in ("new", "running") for one in sessions)


def _name(one: PlannedSession) -> str:
    return escape(f"{one.row.experiment} seed {one.seed} ({one.id})")


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201
