"""The command `plan` for several files: one line per experiment, with sessions, frames and estimated hours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rldsl.cli.tables import echo, escape, table
from rldsl.launch.search_state import SearchProgress
from rldsl.plan.cost import core_seconds
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.plan import Part, Plan
from rldsl.report.words import amount, count

ESTIMATE = (
    "hours: of one core, from earlier sessions of the same agent and environment in the run directory; "
    "with ~, from a rough cost model"
)


@dataclass
class Line:
    """An experiment of the overview."""

    experiment: str
    trials: int
    sessions: int = 0
    frames: int = 0
    """Frames that are still to be trained."""
    seconds: float | None = 0.0
    rough: bool = False
    """Whether the seconds come from the cost model."""
    lacks: str | None = None
    states: Counter[str] = field(default_factory=Counter)

    def add(self, planned: PlannedSession, seconds: float | None, rough: bool) -> None:
        self.sessions += 1
        self.states[planned.state] += 1
        self.frames += planned.frames_left
        self.lacks = self.lacks or (planned.row.trial.env.missing() if planned.lacks else None)
        self.seconds = None if seconds is None or self.seconds is None else self.seconds + seconds
        self.rough = self.rough or rough

    @property
    def hours(self) -> str:
        if self.seconds is None:
            return "-"
        hours = self.seconds / 3600
        return f"{'~' if self.rough and self.frames else ''}{hours:,.{1 if hours >= 1 else 2}f}"


def show_overview(plan: Plan, existing: Existing, searches: Mapping[str, SearchProgress]) -> None:
    """Prints a line for each experiment and the totals. What this machine lacks is printed once for each reason."""
    lines = overview(plan, existing, searches)
    table(
        ["experiment", "trials", "sessions", "done", "frames", "hours"],
        [_cells(line) for line in lines],
        right=("trials", "sessions", "done", "frames", "hours"),
    )
    _show_totals(lines)


def print_overview_json(plan: Plan, existing: Existing, searches: Mapping[str, SearchProgress]) -> None:
    """Prints the same as JSON."""
    rows = [
        {
            "experiment": line.experiment,
            "trials": line.trials,
            "sessions": line.sessions,
            "states": dict(line.states),
            "frames": line.frames,
            "core_seconds": line.seconds,
            "lacks": line.lacks,
        }
        for line in overview(plan, existing, searches)
    ]
    print(json.dumps(rows, indent=2))  # noqa: T201


def overview(plan: Plan, existing: Existing, searches: Mapping[str, SearchProgress]) -> list[Line]:
    """The experiments of a plan, in order. A session that several experiments share counts for the first of them."""
    lines = {part.name: Line(part.name, part.trials) for part in plan.parts}
    for planned in existing.sessions(plan):
        lines[planned.row.experiment].add(planned, *_estimate(planned, existing))
    for part in plan.parts:
        if (progress := searches.get(part.name)) is not None:
            _add_progress(lines[part.name], progress, part)
    return list(lines.values())


def _add_progress(line: Line, progress: SearchProgress, part: Part) -> None:
    """A finished search trains nothing more; of trials that are still to be chosen, only the number is known."""
    if progress.finished:
        line.frames, line.seconds, line.lacks = 0, 0.0, None
    elif sessions := progress.unchosen * part.seeds:
        line.sessions, line.frames, line.seconds = line.sessions + sessions, line.frames + sessions * part.frames, None


def _estimate(planned: PlannedSession, existing: Existing) -> tuple[float | None, bool]:
    """Seconds that a session still takes, and whether they come from the cost model."""
    if (seconds := existing.seconds_left(planned)) is not None:
        return seconds, False
    whole = core_seconds(planned.row.trial)
    return None if whole is None else whole * planned.frames_left / planned.frames, True


def _cells(line: Line) -> list[str]:
    done = f"{line.states['done']:,}" if line.states["done"] else ""
    return [line.experiment, f"{line.trials:,}", f"{line.sessions:,}", done, amount(line.frames), line.hours]


def _show_totals(lines: Sequence[Line]) -> None:
    sessions, frames = sum(line.sessions for line in lines), sum(line.frames for line in lines)
    known = [line for line in lines if line.seconds is not None]
    hours = sum(line.seconds or 0.0 for line in known) / 3600
    missing = "" if len(known) == len(lines) else f" without {count(len(lines) - len(known), 'experiment')}"
    echo(
        f"[bold]{count(len(lines), 'experiment')}, {count(sessions, 'session')}[/bold]: "
        f"{amount(frames)} frames to go, about {hours:,.0f} core hours{missing}"
    )
    for reason, number in Counter(line.lacks for line in lines if line.lacks).items():
        echo(f"[yellow]{count(number, 'experiment')} cannot run here: {escape(str(reason))}[/yellow]")
    echo(f"[dim]{ESTIMATE}[/dim]")
