"""Lives of a job: the times that its queue starts it. A job that makes no progress in several of them is stopped."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rldsl.store.journal import Event, Garbage, read_journal
from rldsl.store.session_dir import SessionDir

MOST_LIVES = 3
"""Lives of a job without a new checkpoint after which it is stopped."""
LAUNCHED = "launched"
"""The event of a journal for the beginning of a life."""


def begin_life(directories: Iterable[Path], job_id: str) -> None:
    """Journals the beginning of a life in the sessions of a job."""
    for path in directories:
        SessionDir(path).journal.append(LAUNCHED, job_id=job_id)


def end_without_progress(directories: Iterable[Path], job_id: str) -> str | None:
    """Journals sessions as failed if their job has made no progress in its last lives, and returns the reason."""
    reason = None
    for directory in map(SessionDir, directories):
        journal = read_journal(directory.journal.path)
        state = directory.read_state()
        if state.state not in ("done", "failed") and lives_without_progress(journal, job_id) >= MOST_LIVES:
            frame = f"its last checkpoint is of frame {state.checkpoint_frame or 0:,}"
            cure = "it needs more `hours`, or more `warning_seconds` for its checkpoints"
            reason = f"no progress in {MOST_LIVES} lives of job {job_id}: {frame}; {cure}"
            directory.journal.append("failed", reason=reason)
    return reason


def lives_without_progress(events: Iterable[Event | Garbage], job_id: str) -> int:
    """The lives of a job since the last checkpoint with a later frame than those before, or since it was stopped."""
    lives, frame = 0, 0
    for event in events:
        if isinstance(event, Garbage):
            continue
        if event["event"] == LAUNCHED and event.get("job_id") == job_id:
            lives += 1
        elif event["event"] in ("submitted", "failed", "done"):
            lives = 0
        elif event["event"] == "checkpoint" and (event.get("frame") or 0) > frame:
            lives, frame = 0, event["frame"]
    return lives
