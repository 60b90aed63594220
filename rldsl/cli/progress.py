"""The display of a run: a progress bar per session on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Any

from rldsl.cli.tables import NARROW, console, echo, escape
from rldsl.launch.job_records import JobRecord
from rldsl.launch.observer import Ending, FollowedSession
from rldsl.report.words import amount, count, duration, settings_text

MOST_BARS = 12
"""Running sessions that have a progress bar on a terminal."""
PLAIN_STEPS = 10
"""Plain lines that each session prints until it ends, at most."""
MOST_IDS = 6
NARROW_NUMBERS, WIDE_NUMBERS = 42, 80
"""Characters beside the name of a session in a line with its progress."""
LEAST = 8
"""Characters of the settings that are shown at least."""
COLOURS = {"done": "green", "failed": "red"}


class PlainDisplay:
    """Prints the events of a run as lines: when a session starts, at each tenth of its budget, when it ends."""

    def __init__(self) -> None:
        self.explained: set[str] = set()
        """Sessions whose reason to end has been printed."""
        self.on_ended: Callable[[Ending], None] | None = None
        """Also called when a session ends."""
        self._steps: dict[str, int] = {}
        self._compiling: dict[str, float] = {}
        """Sessions that are compiling, and for how many seconds."""
        self._reasons: set[tuple[str, str]] = set()
        """Reasons that were printed, each with the last line of its log."""

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def print(self, text: str) -> None:
        """Prints a line of markup."""
        echo(text)
        sys.stdout.flush()

    def skipped(self, running: int, failed: int) -> None:
        if running:
            self.print(f"[yellow]{count(running, 'session')} running already[/yellow]")
        if failed:
            retries = "it" if failed == 1 else "them"
            self.print(f"[yellow]{count(failed, 'session')} failed before; `resume` retries {retries}[/yellow]")

    def note(self, sentence: str) -> None:
        self.print(f"[yellow]{escape(sentence)}[/yellow]")

    def already_queued(self, sessions: int) -> None:
        self.print(f"{count(sessions, 'session')} in the queue already")

    def stale_jobs(self, records: Sequence[JobRecord], cancelled: bool, refusals: Sequence[str]) -> None:
        jobs = f"{count(len(records), 'job')} in the queue no longer in the plan ({_ids(records)})"
        if not cancelled:
            self.print(f"[yellow]{jobs}: --cancel-stale cancels them[/yellow]")
        else:
            self.print("; ".join(map(escape, refusals)) if refusals else f"cancelled {jobs}")

    def submitted(self, sessions: int, records: Sequence[JobRecord], backend: str) -> None:
        jobs = f"{count(len(records), 'job')} to {backend}: {_ids(records)}"
        self.print(f"submitted {count(sessions, 'session')} as {jobs}")

    def refused(self, accepted: int, reason: str) -> None:
        self.print(f"[red]only {count(accepted, 'job')} submitted: {escape(reason)}[/red]")

    def stopping(self) -> None:
        self.print("[yellow]stopping: each session checkpoints first; Ctrl-C again kills them[/yellow]")

    def progress(self, running: Collection[FollowedSession]) -> None:
        for session in running:
            self._print_compilation(session)
            step = PLAIN_STEPS * session.frame // session.planned.frames
            if step > self._steps.get(session.planned.id, -1):
                self._steps[session.planned.id] = step
                self.print(f"{escape(_label(session))}: {_progress_line(session) if session.row else 'started'}")

    def ended(self, ending: Ending) -> None:
        if self.on_ended is not None:
            self.on_ended(ending)
        self.print(_ending_line(ending))
        if ending.reason is None:
            return
        self.explained.add(ending.session.planned.id)
        key = ending.reason, ending.log[-1] if ending.log else ""
        if key in self._reasons:  # sessions of a pack end for one reason, with one log
            return
        self._reasons.add(key)
        if not any(ending.reason in line for line in ending.log):
            self.print(f"  [red]{escape(ending.reason)}[/red]")
        for line in ending.log:
            style = "red" if ending.reason in line else "dim"
            self.print(f"  [{style}]{escape(line)}[/]")

    def _print_compilation(self, session: FollowedSession) -> None:
        """A line when it begins to compile, and one when that has ended."""
        id, seconds = session.planned.id, session.compiling
        if seconds is not None:
            if id not in self._compiling:
                self.print(f"{escape(_label(session))}: compiling")
            self._compiling[id] = seconds
        elif id in self._compiling:
            self.print(f"{escape(_label(session))}: compiled in {duration(self._compiling.pop(id))}")


class LiveDisplay(PlainDisplay):
    """Shows a progress bar for each running session."""

    def __init__(self) -> None:
        super().__init__()
        from rich.progress import BarColumn, Progress, TextColumn

        def column(name: str, prefix: str = "", suffix: str = "") -> TextColumn:
            return TextColumn(f"{prefix}{{task.fields[{name}]}}{suffix}", justify="right", markup=False)

        wide = [column("speed"), column("episode_return", prefix="return "), column("left", suffix=" left")]
        narrow = [column("episode_return", prefix="return "), column("compiling_or_left")]
        is_wide = console().width >= NARROW
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            *([BarColumn(bar_width=24)] if is_wide else []),
            column("frames"),
            *(wide if is_wide else narrow),
            console=console(),
        )
        self._longest = console().width - (WIDE_NUMBERS if is_wide else NARROW_NUMBERS)
        self._tasks: dict[str, Any] = {}
        self._started = False

    def __exit__(self, *_: object) -> None:
        if self._started:
            self.bars.stop()

    def print(self, text: str) -> None:
        self.bars.console.print(text, soft_wrap=True)

    def progress(self, running: Collection[FollowedSession]) -> None:
        if running and not self._started:
            self.bars.start()
            self._started = True
        for session in islice(running, MOST_BARS):
            id, fields = session.planned.id, _fields(session)
            if id not in self._tasks:
                label = _label(session, self._longest)
                self._tasks[id] = self.bars.add_task(label, total=session.planned.frames, **fields)
            self.bars.update(self._tasks[id], completed=session.frame, **fields)

    def ended(self, ending: Ending) -> None:
        if (task := self._tasks.pop(ending.session.planned.id, None)) is not None:
            self.bars.remove_task(task)
        super().ended(ending)


def make_display() -> PlainDisplay:
    """Progress bars on a terminal, plain lines otherwise."""
    return LiveDisplay() if console().is_terminal else PlainDisplay()


def _label(session: FollowedSession, longest: int | None = None) -> str:
    """The experiment, the settings that tell its trial from others, and the seed.

    If that is too long, the id of the session takes the place of experiment and seed, and the settings are cut.
    """
    row, seed = session.planned.row, f"seed {session.planned.seed}"
    differs = settings_text(row.differs)
    label = " ".join(filter(None, (row.experiment, differs, seed)))
    if longest is None or not differs or len(label) <= longest:
        return label
    room = max(LEAST, longest - len(session.planned.id) - 1)
    return f"{session.planned.id} {differs if len(differs) <= room else f'{differs[: room - 1]}…'}"


def _fields(session: FollowedSession) -> dict[str, Any]:
    episode_return, compiling = session.row.get("episode_return"), session.compiling
    speed = f"{'-' if session.fps is None else amount(session.fps)} fps"
    return {
        "frames": f"{amount(session.frame)}/{amount(session.planned.frames)}",
        "speed": speed if compiling is None else f"compiling {duration(compiling)}",
        "episode_return": "-" if episode_return is None else f"{episode_return:.1f}",
        "left": duration(session.seconds_left),
        "compiling_or_left": f"{duration(session.seconds_left)} left" if compiling is None else "compiling",
    }


def _progress_line(session: FollowedSession) -> str:
    fields = _fields(session)
    shown = (f"{fields['frames']} frames", fields["speed"], f"return {fields['episode_return']}")
    return f"{', '.join(shown)}, {fields['left']} left"


def _ending_line(ending: Ending) -> str:
    session, fields = ending.session, _fields(ending.session)
    word = ending.state if ending.state != "resume" else "crashed" if ending.reason else "stopped"
    seconds = duration(session.row.get("seconds")) if session.row else "-"
    numbers = f"{fields['frames']} frames, return {fields['episode_return']}, {seconds}"
    return f"[{COLOURS.get(ending.state, 'yellow')}]{word}[/]  {escape(_label(session))}: {numbers}"


def _ids(records: Sequence[JobRecord]) -> str:
    shown = ", ".join(record.job_id for record in records[:MOST_IDS])
    return shown + (", ..." if len(records) > MOST_IDS else "")
