"""How a session stands, in the words of `status`, `list` and the monitor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rldsl.report.words import count
from rldsl.store.session_dir import SessionDir, StateReport

STYLES = {"new": "cyan", "resume": "yellow", "running": "blue", "done": "green", "failed": "red"}
"""The states, and the colour of each."""


@dataclass(frozen=True, slots=True)
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

    @property
    def note(self) -> str:
        """What a person should know beside the figures."""
        notes = [self.reason] if self.reason else []
        if self.unreadable:
            notes.append(f"{count(self.unreadable, 'unreadable line')} in the journal")
        return "; ".join(notes)


@dataclass(frozen=True, slots=True)
class About:
    """What a session is, as far as its status needs it."""

    experiment: str
    id: str
    seed: int
    frames: int
    target: float | None

    @classmethod
    def from_record(cls, record: Mapping[str, Any], directory: SessionDir) -> About:
        """By `session.json`, or by the name of the directory alone where that says nothing."""
        target, frames = record.get("target"), record.get("frames")
        score = target.get("score") if isinstance(target, dict) else None
        known = frames if isinstance(frames, int) else 0
        return cls(str(record.get("experiment", "?")), directory.id, directory.seed or 0, known, score)


def status_of(about: About, directory: SessionDir, report: StateReport, last: Mapping[str, Any]) -> Status:
    """A session's status by what its journal adds up to and its last log point."""
    return Status(
        experiment=about.experiment,
        session=about.id,
        seed=about.seed,
        state=report.state,
        frame=int(max(report.frame, last.get("frame") or 0)),
        frames=about.frames,
        fps=last.get("fps"),
        mean_return=last.get("episode_return_ma"),
        target=about.target,
        seconds=max(report.seconds, last.get("seconds") or 0.0),
        lives=report.lives,
        reason=report.reason if report.state in ("failed", "resume") else None,
        unreadable=report.garbage,
        directory=str(directory.path),
    )
