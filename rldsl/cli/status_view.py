"""How sessions stand: the plain-text door to the same facts that the monitor shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rldsl.cli.plan_view import STYLES
from rldsl.cli.tables import echo, escape, table
from rldsl.cli.words import amount, count, duration
from rldsl.plan.existing import Existing
from rldsl.plan.plan import Plan
from rldsl.store.errors import StoreError
from rldsl.store.metrics import last_row
from rldsl.store.runs import Runs
from rldsl.store.session_dir import SessionDir, StateReport


@dataclass(frozen=True)
class Status:
    """One session."""

    experiment: str
    session: str
    seed: int
    state: str
    frame: int
    frames: int
    fps: float | None
    mean_return: float | None
    target: float | None
    seconds: float
    lives: int
    reason: str | None
    unreadable: int
    directory: str


def of_plan(plan: Plan, existing: Existing) -> Iterator[Status]:
    """The sessions of a plan, the ones that have not been started included."""
    seen: set[str] = set()
    for row in plan.rows():
        for one in existing.standings(row):
            if one.id not in seen:
                seen.add(one.id)
                target = row.target.score if row.target else None
                directory = SessionDir(existing.runs / one.directory)
                yield _status(row.experiment, one.id, one.seed, one.frames, target, directory, one.report)


def of_runs(runs: Path) -> Iterator[Status]:
    """Every session of a run directory."""
    for directory in Runs(runs).sessions():
        try:
            about = directory.read_session()
        except StoreError:
            about = {}
        score = (about.get("target") or {}).get("score")
        name = about.get("experiment", "?")
        frames = about.get("frames", 0)
        yield _status(name, directory.id, directory.seed or 0, frames, score, directory, directory.report())


def _status(
    name: str, id: str, seed: int, frames: int, target: float | None, directory: SessionDir, report: StateReport
) -> Status:
    row: dict[str, Any] = (last_row(directory.metrics) if report.state != "new" else None) or {}
    return Status(
        experiment=name,
        session=id,
        seed=seed,
        state=report.state,
        frame=int(max(report.frame, row.get("frame") or 0)),
        frames=frames,
        fps=row.get("fps"),
        mean_return=row.get("return_ma"),
        target=target,
        seconds=max(report.seconds, row.get("seconds") or 0.0),
        lives=report.lives,
        reason=report.reason if report.state in ("failed", "resume") else None,
        unreadable=report.garbage,
        directory=str(directory.path),
    )


def show(statuses: Iterable[Status], as_json: bool) -> None:
    """Prints them as a table with a total, or as JSON."""
    sessions = list(statuses)
    if as_json:
        print(json.dumps([asdict(one) for one in sessions], indent=2))  # noqa: T201
        return
    if not sessions:
        echo("there are no sessions")
        return
    names = ["experiment", "session", "state", "frames", "fps", "return", "target", "time", "note"]
    table(names, [_cells(one) for one in sessions], right=("frames", "fps", "return", "target", "time"))
    states = ", ".join(f"{number:,} {state}" for state, number in Counter(one.state for one in sessions).items())
    echo(f"[bold]{count(len(sessions), 'session')}[/bold]: {states}")


def _cells(one: Status) -> list[str]:
    return [
        one.experiment,
        one.session,
        f"[{STYLES[one.state]}]{one.state}[/]",
        amount(one.frames) if one.state in ("done", "new") else f"{amount(one.frame)}/{amount(one.frames)}",
        "" if one.fps is None else amount(one.fps),
        "" if one.mean_return is None else f"{one.mean_return:.1f}",
        "" if one.target is None else f"{one.target:g}",
        duration(one.seconds) if one.seconds else "",
        escape(_note(one)),
    ]


def _note(one: Status) -> str:
    notes = [one.reason] if one.reason else []
    if one.unreadable:
        notes.append(f"{count(one.unreadable, 'unreadable line')} in the journal")
    return "; ".join(notes)
