"""Training as it goes: a line per session on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from rldsl.cli.tables import console, echo, escape
from rldsl.plan.existing import PlannedSession
from rldsl.report.words import amount, duration, value
from rldsl.store.metrics import MetricsReader, Row
from rldsl.store.session_dir import SessionDir

SHOWN = 12
"""Running sessions that have a line of their own on a terminal."""
STEPS = 10
"""Plain lines that each session prints on its way."""


@dataclass
class Followed:
    """A session that runs, and its last log point."""

    planned: PlannedSession
    directory: SessionDir
    reader: MetricsReader
    row: Row = field(default_factory=dict)

    @classmethod
    def start(cls, planned: PlannedSession, directory: SessionDir) -> Followed:
        """Follows a session from what it has written so far."""
        return cls(planned, directory, MetricsReader(directory.metrics))

    @property
    def label(self) -> str:
        """Its experiment, what tells its trial from others, and its seed."""
        differs = ",".join(f"{path.rpartition('.')[2]}={value(one)}" for path, one in self.planned.row.differs.items())
        return f"{self.planned.row.experiment}{f' {differs}' if differs else ''} seed {self.planned.seed}"

    def read(self) -> bool:
        """Reads what is new; whether there was anything."""
        rows = self.reader.read_new()
        if rows:
            self.row = rows[-1]
        return bool(rows)

    @property
    def frame(self) -> int:
        return int(self.row.get("frame") or self.planned.report.frame)

    @property
    def left(self) -> float | None:
        """Seconds to go at the speed of the last log point."""
        speed = self.row.get("fps")
        return (self.planned.frames - self.frame) / speed if speed else None

    def figures(self) -> dict[str, Any]:
        """What the display shows."""
        mean, speed = self.row.get("episode_return"), self.row.get("fps")
        return {
            "frames": f"{amount(self.frame)}/{amount(self.planned.frames)}",
            "fps": "-" if speed is None else amount(speed),
            "mean": "-" if mean is None else f"{mean:.1f}",
            "left": duration(self.left),
        }


class Display(Protocol):
    """What shows the sessions while they run."""

    def __enter__(self) -> Display: ...
    def __exit__(self, *_: object) -> None: ...
    def update(self, running: Iterable[Followed]) -> None:
        """Shows the sessions that run now."""

    def ended(self, one: Followed, state: str) -> None:
        """Says how a session ended."""


class LiveDisplay:
    """A progress bar per running session."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        def figure(name: str, unit: str = "") -> TextColumn:
            return TextColumn(f"{{task.fields[{name}]}}{unit}", justify="right")

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            figure("frames"),
            figure("fps", " fps"),
            TextColumn("return {task.fields[mean]}", justify="right"),
            figure("left", " left"),
            console=console(),
        )
        self.tasks: dict[str, Any] = {}

    def __enter__(self) -> LiveDisplay:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def update(self, running: Iterable[Followed]) -> None:
        for one in list(running)[:SHOWN]:
            self._update(one)

    def _update(self, one: Followed) -> None:
        id = one.planned.id
        if id not in self.tasks:
            fields = one.figures()
            self.tasks[id] = self.progress.add_task(escape(one.label), total=one.planned.frames, **fields)
        self.progress.update(self.tasks[id], completed=one.frame, **one.figures())

    def ended(self, one: Followed, state: str) -> None:
        if (task := self.tasks.pop(one.planned.id, None)) is not None:
            self.progress.remove_task(task)
        self.progress.console.print(ending(one, state), soft_wrap=True)


class PlainDisplay:
    """A line when a session starts, at each tenth of its way, and when it ends."""

    def __init__(self) -> None:
        self.reported: dict[str, int] = {}

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, running: Iterable[Followed]) -> None:
        for one in running:
            step = STEPS * one.frame // one.planned.frames
            if step > self.reported.get(one.planned.id, -1):
                self.reported[one.planned.id] = step
                shown = one.figures()
                said = f"{shown['frames']} frames, {shown['fps']} fps, return {shown['mean']}, {shown['left']} left"
                self._say(f"{escape(one.label)}: {said if one.row else 'started'}")

    def ended(self, one: Followed, state: str) -> None:
        self._say(ending(one, state))

    def _say(self, text: str) -> None:
        echo(text)
        sys.stdout.flush()


def ending(one: Followed, state: str) -> str:
    """The line that says how a session ended."""
    colour = {"done": "green", "failed": "red"}.get(state, "yellow")
    shown = one.figures()
    time = duration(one.row.get("seconds")) if one.row else "-"
    word = "stopped" if state == "resume" else state
    return f"[{colour}]{word}[/]  {escape(one.label)}: {shown['frames']} frames, return {shown['mean']}, {time}"


def make_display() -> Display:
    """Live where somebody looks, plain lines otherwise."""
    return LiveDisplay() if console().is_terminal else PlainDisplay()
